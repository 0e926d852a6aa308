"""Permits, acknowledgements, redelivery, seeking, and requests of consumers."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from tests.broker.wire import Type

from ..pair import Said
from ..program import Program, pick
from ..sides import Place
from ..tolerances import READER
from .values import ANY, OFTEN

SOME = st.lists(ANY, min_size=1, max_size=3)


class Consuming(Program):
    """Rules that consume messages."""

    @precondition(lambda self: self.consumers)
    @rule(which=ANY, permits=st.sampled_from([1, 2, 5, 10, 100, 0]))
    def flow(self, which: int, permits: int) -> None:
        (link, ident), _ = pick(self.consumers, which)
        self.flow_to(link, ident, permits)

    @precondition(lambda self: any(each.received for each in self.consumers.values()))
    @rule(which=ANY, numbers=SOME, answered=st.booleans(), ack_set=st.sampled_from([None, None, 0b1110, 0b0110, 0b1]))
    def ack(self, which: int, numbers: list[int], answered: bool, ack_set: int | None) -> None:
        """Acknowledge some messages that a consumer has received."""
        having = {key: each for key, each in self.consumers.items() if each.received}
        (link, ident), consumer = pick(having, which)
        extra: tuple[tuple[str, Any], ...] = () if ack_set is None else (("ack_set", [ack_set]),)
        numbers = sorted({consumer.received[number % len(consumer.received)] for number in numbers})
        self._ack(link, answered, consumer_id=ident, ack_type=0, message_id=[Place(n, extra=extra) for n in numbers])

    @precondition(lambda self: self.consumers and self.pair.ours.places)
    @rule(which=ANY, number=ANY, cumulative=OFTEN, answered=st.booleans(), on=st.sampled_from([0, 0, 0, 1, 100]))
    def ack_anything(self, which: int, number: int, cumulative: bool, answered: bool, on: int) -> None:
        (link, ident), _ = pick(self.consumers, which)
        place = Place(number % len(self.pair.ours.places), entries_on=on)
        self._ack(link, answered, consumer_id=ident, ack_type=int(cumulative), message_id=[place])

    @precondition(lambda self: any(each.received for each in self.consumers.values()))
    @rule(which=ANY, number=ANY, error=st.integers(0, 4))
    def ack_as_unreadable(self, which: int, number: int, error: int) -> None:
        having = {key: each for key, each in self.consumers.items() if each.received}
        (link, ident), consumer = pick(having, which)
        place = Place(consumer.received[number % len(consumer.received)])
        properties = [{"key": "k", "value": 5}]
        fields = {"message_id": [place], "validation_error": error, "properties": properties}
        self._ack(link, True, consumer_id=ident, ack_type=0, **fields)

    def _ack(self, link: int, answered: bool, **fields: Any) -> None:
        if answered:
            self.ask(link, Type.ACK, **fields)
        else:
            self.tell(link, Said(Type.ACK, fields))

    @precondition(lambda self: self.consumers)
    @rule(which=ANY, numbers=st.lists(ANY, max_size=3))
    def redeliver(self, which: int, numbers: list[int]) -> None:
        """Redeliver some or all messages. With chunks, redeliver all, or Pulsar stalls (docs/differences.md)."""
        (link, ident), consumer = pick(self.consumers, which)
        some = [] if self.chunks else numbers
        ids = [Place(consumer.received[number % len(consumer.received)]) for number in some if consumer.received]
        self.tell(link, Said(Type.REDELIVER_UNACKNOWLEDGED_MESSAGES, {"consumer_id": ident, "message_ids": ids}))

    @precondition(lambda self: self.consumers and self.pair.ours.places)
    @rule(which=ANY, number=ANY, end=st.sampled_from([None, None, "earliest", "latest"]))
    def seek(self, which: int, number: int, end: str | None) -> None:
        (link, ident), consumer = pick(self.consumers, which)
        if consumer.subscription == READER or not self.may_move(consumer.topic, consumer.subscription):
            return
        where: Any = Place(number % len(self.pair.ours.places))
        if end is not None:
            ends = {"earliest": 2**64 - 1, "latest": 2**63 - 1}
            where = {"ledgerId": ends[end], "entryId": ends[end]}
        self.ask(link, Type.SEEK, consumer_id=ident, message_id=where)

    @precondition(lambda self: self.consumers)
    @rule(which=ANY, time=st.sampled_from([1, 4_102_444_800_000, None]))
    def seek_time(self, which: int, time: int | None) -> None:
        (link, ident), consumer = pick(self.consumers, which)
        if consumer.subscription == READER or not self.may_move(consumer.topic, consumer.subscription):
            return
        fields: dict[str, Any] = {} if time is None else {"message_publish_time": time}
        self.ask(link, Type.SEEK, consumer_id=ident, **fields)

    @precondition(lambda self: self.consumers)
    @rule(which=ANY)
    def last_message_id(self, which: int) -> None:
        (link, ident), _ = pick(self.consumers, which)
        self.ask(link, Type.GET_LAST_MESSAGE_ID, consumer_id=ident)

    @precondition(lambda self: self.consumers)
    @rule(which=ANY)
    def consumer_stats(self, which: int) -> None:
        (link, ident), _ = pick(self.consumers, which)
        self.ask(link, Type.CONSUMER_STATS, consumer_id=ident)

    @precondition(lambda self: self.links)
    @rule(which=ANY, what=st.integers(0, 7))
    def unknown_consumer(self, which: int, what: int) -> None:
        link = self.some_link(which)
        silent = {0: Type.FLOW, 1: Type.REDELIVER_UNACKNOWLEDGED_MESSAGES, 2: Type.ACK}
        if what in silent:
            acknowledged = {"ack_type": 0, "message_id": [{"ledgerId": 1, "entryId": 1}]}
            more: list[dict[str, Any]] = [{"messagePermits": 1}, {}, acknowledged]
            self.tell(link, Said(silent[what], {"consumer_id": 77, **more[what]}))
            return
        asked = [Type.UNSUBSCRIBE, Type.SEEK, Type.GET_LAST_MESSAGE_ID, Type.CLOSE_CONSUMER, Type.ACK][what - 3]
        fields: dict[str, Any] = {"message_publish_time": 1} if asked == Type.SEEK else {}
        if asked == Type.ACK:
            fields = {"ack_type": 1, "message_id": [{"ledgerId": 1, "entryId": 1}]}
        self.ask(link, asked, consumer_id=77, **fields)
