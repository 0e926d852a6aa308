"""Rules of transactions, as far as a client speaks of them."""

from __future__ import annotations

from collections.abc import Iterator

from pulsarium.capture.lint.frames import Frame
from pulsarium.capture.lint.rule import rule
from pulsarium.capture.lint.shared import transaction_of
from pulsarium.capture.lint.state import State

_PIP = "PIP-31"


@rule(
    "coordinator-not-connected",
    "NEW_TXN goes to a coordinator that TC_CLIENT_CONNECT_REQUEST has asked for.",
    "PulsarApi.proto: CommandTcClientConnectRequest, since version 19",
    "Look transaction_coordinator_assign up, connect to the owner of each partition and ask for its coordinator there.",
    on=["NEW_TXN"],
)
def _not_connected(state: State, frame: Frame) -> Iterator[str]:
    version = state.conversation.protocol_version or 0
    if version >= 19 and frame.body.tc_id not in state.coordinators:
        yield f"NEW_TXN for coordinator {frame.body.tc_id}"


@rule(
    "transaction-not-open",
    "A transaction is one that NEW_TXN_RESPONSE gave out, and that END_TXN did not end.",
    _PIP,
    "Keep the ids of NEW_TXN_RESPONSE; begin no work in a transaction that ends: what is sent stays invisible.",
    on=["SEND", "ACK", "ADD_PARTITION_TO_TXN", "ADD_SUBSCRIPTION_TO_TXN", "END_TXN"],
)
def _not_open(state: State, frame: Frame) -> Iterator[str]:
    transaction = transaction_of(frame.body)
    if transaction is None or state.shared is None or not state.shared.whole:
        return
    wrong = state.shared.transactions.wrong_with(transaction)
    if wrong:
        yield f"{frame.name} in ({transaction[0]},{transaction[1]}), which {wrong}"


@rule(
    "transaction-half-named",
    "A transaction has two numbers, and both are named.",
    "PulsarApi.proto: txnid_most_bits, txnid_least_bits",
    "Set txnid_most_bits and txnid_least_bits.",
    on=["SEND", "ACK"],
)
def _half(state: State, frame: Frame) -> Iterator[str]:
    given = [name for name in ("txnid_most_bits", "txnid_least_bits") if frame.body.HasField(name)]
    if len(given) == 1:
        yield f"{frame.name} with {given[0]} alone"
