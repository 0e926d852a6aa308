"""Ship each order at least once. The bug: the worker acknowledges an order before it is shipped."""

from time import monotonic

import pulsar
from runs import Broken, again, main

ORDERS = 6
SECONDS = 10


def ship(client: pulsar.Client, mended: bool) -> None:
    orders = again(
        lambda: client.subscribe(
            "orders",
            "shipping",
            initial_position=pulsar.InitialPosition.Earliest,
            negative_ack_redelivery_delay_ms=100,
        )
    )
    shop = again(lambda: client.create_producer("orders"))
    for number in range(ORDERS):
        shop.send(str(number).encode())

    shipments = again(lambda: client.create_producer("shipments", send_timeout_millis=300))
    shipped: set[int] = set()
    end = monotonic() + SECONDS
    while len(shipped) < ORDERS and monotonic() < end:
        try:
            order = orders.receive(timeout_millis=200)
        except pulsar.Timeout:
            continue
        if not mended:
            orders.acknowledge(order)
        try:
            shipments.send(order.data())
        except pulsar.PulsarException:
            orders.negative_acknowledge(order)  # it comes again, unless it was acknowledged
            continue
        shipped.add(int(order.data()))
        if mended:
            orders.acknowledge(order)

    for number in range(ORDERS):
        if number not in shipped:
            raise Broken(f"order {number} was not shipped in {SECONDS} seconds")


main(ship)
