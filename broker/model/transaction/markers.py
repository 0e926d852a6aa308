"""What tells in a topic itself that a transaction ended."""

from __future__ import annotations

from pulsarium.proto.entry import build, txn_bits_of, with_txn_bits
from pulsarium.proto.errors import EntryError
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.txn_id import TxnId

TXN_COMMIT = 21  # PulsarMarkers.proto, MarkerType
TXN_ABORT = 22
NO_SEQUENCE = 2**64 - 1
NO_MESSAGE = b""


def marker(txn: TxnId, *, commit: bool, now_ms: int) -> bytes:
    """The entry that ends a transaction on a topic."""
    metadata = pb.MessageMetadata(
        producer_name="pulsar.txn.marker",
        sequence_id=NO_SEQUENCE,
        publish_time=now_ms,
        marker_type=TXN_COMMIT if commit else TXN_ABORT,
        txnid_most_bits=txn.most,
        txnid_least_bits=txn.least,
    )
    return build(metadata, NO_MESSAGE)


def naming(entry: bytes, txn: TxnId) -> bytes:
    """The entry as it says itself that it was sent in `txn`: the Go client says that in SEND alone."""
    try:
        return entry if txn_bits_of(entry) == txn else with_txn_bits(entry, *txn)
    except EntryError:
        return entry
