"""Send express orders at once, and the others in parcels of three.

The bug: the worker acknowledges an express order cumulatively, and so the orders that still wait for their parcel.
"""

from time import monotonic

import pulsar
from runs import Broken, again, main

ORDERS = ["book", "EXPRESS pen", "lamp", "EXPRESS cup", "chair", "EXPRESS map"]
SECONDS = 10


def deliver(client: pulsar.Client, mended: bool) -> None:
    orders = again(
        lambda: client.subscribe(
            "orders",
            "parcels",
            consumer_type=pulsar.ConsumerType.Failover,
            initial_position=pulsar.InitialPosition.Earliest,
        )
    )
    shop = again(lambda: client.create_producer("orders"))
    for order in ORDERS:
        shop.send(order.encode())

    sent: set[str] = set()
    parcel: dict[str, pulsar.Message] = {}
    end = monotonic() + SECONDS
    while len(sent) < len(ORDERS) and monotonic() < end:
        if not orders.is_connected():
            parcel.clear()  # another instance may get these orders now: they were not acknowledged
            end = monotonic() + SECONDS  # the client waits longer before each attempt to return
        try:
            message = orders.receive(timeout_millis=20)
        except pulsar.Timeout:
            continue
        end = monotonic() + SECONDS  # only a lost order makes the others wait so long
        order = message.data().decode()
        if order.startswith("EXPRESS"):
            sent.add(order)
            if mended:
                orders.acknowledge(message)
            else:
                orders.acknowledge_cumulative(message)
        else:
            parcel[order] = message
            if len(parcel) == 3:
                sent.update(parcel)
                for each in parcel.values():
                    orders.acknowledge(each)
                parcel.clear()

    for order in ORDERS:
        if order not in sent:
            raise Broken(f"the {order} was not sent in {SECONDS} seconds")


main(deliver)
