"""Add up payments, each once. The bug: the ledger counts a payment again when the payment is redelivered."""

from time import monotonic

import pulsar
from runs import Broken, again, main

PAYMENTS = 8
SECONDS = 60


def keep_ledger(client: pulsar.Client, mended: bool) -> None:
    payments = again(lambda: client.subscribe("payments", "ledger", initial_position=pulsar.InitialPosition.Earliest))
    customer = again(lambda: client.create_producer("payments"))
    ledger: list[str] = []
    for number in range(PAYMENTS):
        customer.send(str(number).encode())
        end = monotonic() + SECONDS
        while str(number) not in ledger:
            if not payments.is_connected():
                end = monotonic() + SECONDS  # the client waits longer before each attempt to return
            if monotonic() > end:
                raise Broken(f"payment {number} was not booked in {SECONDS} seconds")
            try:
                message = payments.receive(timeout_millis=200)
            except pulsar.Timeout:
                continue
            payment = message.data().decode()
            if not (mended and payment in ledger):
                ledger.append(payment)
            payments.acknowledge(message)

    for payment in ledger:
        if ledger.count(payment) > 1:
            raise Broken(f"the ledger shows payment {payment} twice")


main(keep_ledger)
