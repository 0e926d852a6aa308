"""Histories that each break one promise, and unusual histories that break none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pulsarium.proto.entry import build
from pulsarium.proto.generated.PulsarApi_pb2 import MessageIdData, MessageMetadata
from tests.capture.lint.talk import MS, Talk

EXCLUSIVE, SHARED, FAILOVER, KEY_SHARED = range(4)
LATER = 10_000  # milliseconds: longer than the time in which a command and a delivery may cross
TXN: dict[str, Any] = {"txnid_most_bits": 3, "txnid_least_bits": 7}
OTHER_TXN: dict[str, Any] = {"txnid_most_bits": 3, "txnid_least_bits": 8}


class History(Talk):
    """A talk of one producer and some consumers. Methods name a message by its entry id."""

    def wait(self, ms: int = LATER) -> None:
        self.now += ms * MS

    def begin(self, kind: int = EXCLUSIVE, permits: int = 100, **fields: Any) -> None:
        self.greet()
        self.produce()
        self.consume(1, kind, permits, **fields)

    def consume(self, consumer: int, kind: int = EXCLUSIVE, permits: int = 100, **fields: Any) -> None:
        self.client(
            "SUBSCRIBE",
            topic=self.topic,
            subscription="s",
            subType=kind,
            consumer_id=consumer,
            request_id=200 + consumer,
            **fields,
        )
        self.broker("SUCCESS", request_id=200 + consumer)
        self.client("FLOW", consumer_id=consumer, messagePermits=permits)

    def end(self, consumer: int = 1) -> None:
        self.client("CLOSE_CONSUMER", consumer_id=consumer, request_id=300 + consumer)
        self.broker("SUCCESS", request_id=300 + consumer)

    def store(self, *positions: int, sequence: int | None = None, payload: bytes = b"x", **fields: Any) -> None:
        for position in positions:
            number = position if sequence is None else sequence
            self.client("SEND", self._entry(number, payload, **fields), producer_id=1, sequence_id=number)
            at = (1, position) if position >= 0 else (2**64 - 1, 2**64 - 1)
            self.broker("SEND_RECEIPT", producer_id=1, sequence_id=number, message_id=at)

    def get(self, *positions: int, consumer: int = 1, **fields: Any) -> None:
        for position in positions:
            self.broker("MESSAGE", self._entry(position, **fields), consumer_id=consumer, message_id=(1, position))

    def redeliver(self, *positions: int, consumer: int = 1) -> None:
        ids = [MessageIdData(ledgerId=1, entryId=position) for position in positions]
        self.client("REDELIVER_UNACKNOWLEDGED_MESSAGES", consumer_id=consumer, message_ids=ids)

    def transaction(self, request: int = 400, **bits: Any) -> None:
        self.client("NEW_TXN", request_id=request)
        self.broker("NEW_TXN_RESPONSE", request_id=request, **(bits or TXN))

    def finish(self, action: int = 0, request: int = 500, **bits: Any) -> None:
        self.client("END_TXN", request_id=request, txn_action=action, **(bits or TXN))
        self.broker("END_TXN_RESPONSE", request_id=request, **(bits or TXN))

    def acknowledge(self, position: int, **fields: Any) -> None:
        self.client("ACK", consumer_id=1, ack_type=0, message_id=[(1, position)], **fields)

    def _entry(self, sequence: int, payload: bytes = b"x", **fields: Any) -> bytes:
        publish = self.now // MS
        if "delay" in fields:
            fields["deliver_at_time"] = publish + fields.pop("delay")
        return build(MessageMetadata(producer_name="p", sequence_id=sequence, publish_time=publish, **fields), payload)


def _lost(talk: History) -> None:
    talk.begin()
    talk.store(0, 1, 2)
    talk.get(0, 2)


def _again(talk: History) -> None:
    talk.begin()
    talk.store(0)
    talk.get(0)
    talk.wait()
    talk.get(0)


def _acked(talk: History) -> None:
    talk.begin(SHARED)
    talk.store(0)
    talk.get(0)
    talk.ack(0)
    talk.redeliver()
    talk.get(0)


def _acked_through(talk: History) -> None:
    talk.begin()
    talk.wait()
    talk.store(0, 1)
    talk.get(0, 1)
    talk.ack(1, cumulative=True)
    talk.end()
    talk.consume(2)
    talk.get(0, consumer=2)


def _stored_twice(talk: History) -> None:
    talk.begin()
    talk.store(0)
    talk.store(-1, sequence=0)
    talk.store(1, sequence=0)
    talk.store(-1, sequence=0)
    talk.get(0, 1)


def _producer_order(talk: History) -> None:
    talk.greet()
    talk.produce()
    talk.store(1)
    talk.store(0, sequence=2)


def _subscription_order(talk: History) -> None:
    talk.begin()
    talk.store(0, 1)
    talk.get(1, 0)


def _key_order(talk: History) -> None:
    talk.begin(KEY_SHARED)
    talk.store(0, 1, partition_key="k")
    talk.get(1, 0, partition_key="k")


def _key_owner(talk: History) -> None:
    talk.begin(KEY_SHARED)
    talk.consume(2, KEY_SHARED)
    talk.store(0, 1, partition_key="k")
    talk.get(0, partition_key="k")
    talk.get(1, consumer=2, partition_key="k")


def _dirty(talk: History) -> None:
    talk.begin()
    talk.transaction()
    talk.store(0, **TXN)
    talk.get(0, **TXN)
    talk.finish()


def _aborted(talk: History) -> None:
    talk.begin()
    talk.transaction()
    talk.store(0, **TXN)
    talk.finish(action=1)
    talk.get(0, **TXN)


def _consumed_twice(talk: History) -> None:
    talk.begin()
    talk.store(0)
    talk.get(0)
    for number, bits in enumerate((TXN, OTHER_TXN)):
        talk.transaction(400 + number, **bits)
        talk.acknowledge(0, **bits)
        talk.finish(0, 500 + number, **bits)


def _newest(talk: History) -> None:
    talk.greet()
    talk.produce()
    for position, key in enumerate("aaab"):
        talk.store(position, partition_key=key)
    talk.consume(1, read_compacted=True, initialPosition=1, durable=False)
    talk.get(3, partition_key="b")


def _early(talk: History) -> None:
    talk.begin(SHARED)
    talk.store(0, delay=3000)
    talk.wait(3000)
    talk.get(0, deliver_at_time=talk.now // MS)
    talk.store(1, delay=5000)
    talk.get(1, delay=5000)


def _permits(talk: History) -> None:
    talk.begin(permits=1)
    talk.store(0, 1)
    talk.get(0, 1)


PLANTED: dict[str, tuple[Callable[[History], None], ...]] = {
    "message-lost": (_lost,),
    "delivered-again": (_again,),
    "acknowledged-and-delivered": (_acked,),
    "stored-twice": (_stored_twice,),
    "producer-order": (_producer_order,),
    "subscription-order": (_subscription_order,),
    "key-order": (_key_order,),
    "key-of-two-consumers": (_key_owner,),
    "dirty-read": (_dirty,),
    "aborted-read": (_aborted,),
    "acknowledged-by-two-transactions": (_consumed_twice,),
    "delivered-before-its-time": (_early,),
    "permits-exceeded": (_permits,),
}
"""Histories whose frames alone prove the violation, by the promise that each breaks."""


def _lost_at_the_end(talk: History) -> None:
    talk.begin(SHARED)
    talk.store(0)
    talk.wait()
    talk.end()


def _lost_in_a_transaction(talk: History) -> None:
    talk.begin()
    talk.transaction()
    talk.store(0, **TXN)
    talk.finish()
    talk.wait()
    talk.end()


def _acked_and_reopened(talk: History) -> None:
    talk.begin(SHARED)
    talk.store(0)
    talk.get(0)
    talk.ack(0)
    talk.end()
    talk.consume(2, SHARED)
    talk.get(0, consumer=2)


UNSEEN: dict[str, tuple[Callable[[History], None], ...]] = {
    "message-lost": (_lost_at_the_end, _lost_in_a_transaction),
    "acknowledged-and-delivered": (_acked_through, _acked_and_reopened),
    "compacted-newest-lost": (_newest,),
}
"""Histories that break a promise unless REST calls, expiry or another program explain them, by that promise."""


def _usual(talk: History) -> None:
    talk.begin(KEY_SHARED)
    talk.store(0, 1, 2, partition_key="k")
    talk.get(0, 1, partition_key="k")
    talk.ack(0, 1)
    talk.get(2, partition_key="k")
    talk.redeliver(2)
    talk.get(2, partition_key="k")


def _crossing(talk: History) -> None:
    talk.begin()
    talk.store(0, 1)
    talk.redeliver()
    talk.get(0, 1, 0, 1)


def _sought(talk: History) -> None:
    talk.begin()
    talk.store(0, 1)
    talk.get(0, 1)
    talk.ack(0, 1)
    talk.client("SEEK", consumer_id=1, request_id=9, message_id=(1, 0))
    talk.broker("SUCCESS", request_id=9)
    talk.get(0, 1)


def _unloaded(talk: History) -> None:
    talk.begin()
    talk.store(0, 1)
    talk.get(0, 1)
    talk.broker("CLOSE_CONSUMER", consumer_id=1, request_id=0)
    talk.consume(1)
    talk.get(0, 1)


def _moved(talk: History) -> None:
    talk.begin(KEY_SHARED)
    talk.consume(2, KEY_SHARED)
    talk.store(0, 1, partition_key="k")
    talk.get(0, partition_key="k")
    talk.end()
    talk.get(0, 1, consumer=2, partition_key="k")


def _committed(talk: History) -> None:
    talk.begin()
    talk.transaction()
    talk.store(0, **TXN)
    talk.finish()
    talk.get(0, **TXN)


def _resent(talk: History) -> None:
    """Send a message again without deduplication: the broker stores the message again."""
    talk.begin()
    talk.store(0)
    talk.store(1, sequence=0)
    talk.get(0, 1)


def _delayed(talk: History) -> None:
    """Deliver a delayed message at once, because an Exclusive subscription ignores the delay."""
    talk.begin()
    talk.store(0, delay=60_000)
    talk.get(0, delay=60_000)


def _compacted(talk: History) -> None:
    talk.greet()
    talk.produce()
    for position, (key, payload) in enumerate([("a", b"1"), ("a", b"2"), ("b", b"1"), ("b", b"")]):
        talk.store(position, payload=payload, partition_key=key)
    talk.store(4, partition_key="c")
    talk.consume(1, read_compacted=True, initialPosition=1, durable=False)
    talk.get(1, 4)


def _acked_in_vain(talk: History) -> None:
    """Acknowledge in a transaction, and deliver the message again: no frame shows that the transaction timed out."""
    talk.begin(SHARED)
    talk.store(0)
    talk.get(0)
    talk.wait()
    talk.transaction()
    talk.acknowledge(0, **TXN)
    talk.get(0)


KEPT = (_acked_in_vain, _usual, _crossing, _sought, _unloaded, _moved, _committed, _resent, _delayed, _compacted)
