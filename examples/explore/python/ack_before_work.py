"""Ship each order at least once. The bug: the worker acknowledges an order before it is shipped."""

from time import monotonic, sleep

import pulsar
from runs import Broken, again, main

ORDERS = 6
SECONDS = 10
STEPS = 20


def is_packed(orders: pulsar.Consumer) -> bool:
    """Pack an order, which takes longer than an acknowledgement. Give up when another worker may have got the order."""
    for _ in range(STEPS):
        sleep(0.01)
        if not orders.is_connected():
            return False
    return True


def ship(client: pulsar.Client, mended: bool) -> None:
    orders = again(
        lambda: client.subscribe(
            "orders", "shipping", initial_position=pulsar.InitialPosition.Earliest, receiver_queue_size=1
        )
    )
    shop = again(lambda: client.create_producer("orders"))
    for number in range(ORDERS):
        shop.send(str(number).encode())

    shipped: set[int] = set()
    end = monotonic() + SECONDS
    while len(shipped) < ORDERS and monotonic() < end:
        if not orders.is_connected():
            end = monotonic() + SECONDS  # the client waits longer before each attempt to return
        try:
            order = orders.receive(timeout_millis=200)
        except pulsar.Timeout:
            continue
        end = monotonic() + SECONDS  # only a lost order makes the others wait so long
        if not mended:
            orders.acknowledge(order)
        if not is_packed(orders):
            continue  # it comes again, unless it was acknowledged
        shipped.add(int(order.data()))
        if mended:
            orders.acknowledge(order)

    for number in range(ORDERS):
        if number not in shipped:
            raise Broken(f"order {number} was not shipped in {SECONDS} seconds")


main(ship)
