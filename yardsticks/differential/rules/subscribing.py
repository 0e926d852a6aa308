"""Opening and closing of consumers and readers."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.wire import Exclusive, Failover, KeyShared, Shared, Type

from ..program import Consumer, Program, pick
from ..sides import Place
from ..tolerances import READER, SEEKER
from .values import ANY, EARLIEST, IDS, LATEST, LINKS, OFTEN, SELDOM, SUBSCRIPTIONS, TOPIC

TYPES = st.sampled_from([Exclusive, Shared, Shared, Failover, KeyShared, KeyShared])
STICKY_RANGES = [[(0, 32767)], [(32768, 65535)], [(0, 65535)], [(0, 9), (20, 29)], [], [(9, 5)], [(60000, 70000)]]


class Subscribing(Program):
    """Rules that open and close consumers."""

    @initialize(type=TYPES, others=st.integers(0, 2), permits=st.sampled_from([3, 0, 100]), batches=st.booleans())
    def begin(self, type: int, others: int, permits: int, batches: bool) -> None:
        """Open some consumers at the beginning, because most steps need a consumer."""
        self.batches = batches
        for link in range(others + 1):
            self.subscribe(link, 0, 0, "s", type, True, 0, True)
            if permits and (link, 0) in self.consumers:
                self.flow_to(link, 0, permits)

    @rule(
        link=LINKS,
        ident=IDS,
        topic=TOPIC,
        subscription=SUBSCRIPTIONS,
        type=TYPES,
        earliest=OFTEN,
        priority=st.sampled_from([0, 0, 0, 1]),
        named=OFTEN,
    )
    def subscribe(
        self,
        link: int,
        ident: int,
        topic: int,
        subscription: str,
        type: int,
        earliest: bool,
        priority: int,
        named: bool,
    ) -> None:
        fields: dict[str, Any] = {"initialPosition": int(earliest)}
        if priority:
            fields["priority_level"] = priority
        if named:
            fields["consumer_name"] = f"c{link}{ident}"
        self._subscribe(link, ident, topic, subscription, type, True, fields)

    @rule(
        link=LINKS,
        ident=IDS,
        topic=TOPIC,
        name=st.sampled_from([READER, READER, SEEKER]),
        type=TYPES,
        start=st.integers(-2, 15),
        batch_index=st.sampled_from([-1, 1]),
    )
    def read(self, link: int, ident: int, topic: int, name: str, type: int, start: int, batch_index: int) -> None:
        """Open a reader, whose cursor is deleted with its last consumer."""
        fields: dict[str, Any] = {"start_message_id": self.start(start, batch_index), "consumer_name": "reader"}
        self._subscribe(link, ident, topic, name, type, False, fields)

    @rule(link=LINKS, ident=IDS, topic=TOPIC, ranges=st.sampled_from(STICKY_RANGES))
    def subscribe_sticky(self, link: int, ident: int, topic: int, ranges: list[tuple[int, int]]) -> None:
        meta = {
            "keySharedMode": pb.KeySharedMode.STICKY,
            "hashRanges": [{"start": start, "end": end} for start, end in ranges],
        }
        fields: dict[str, Any] = {"keySharedMeta": meta, "initialPosition": 1, "consumer_name": f"k{link}{ident}"}
        self._subscribe(link, ident, topic, "k", KeyShared, True, fields)

    @rule(link=LINKS, ident=IDS, topic=TOPIC, type=TYPES, what=st.integers(0, 5), start=st.integers(-2, 15))
    def subscribe_oddly(self, link: int, ident: int, topic: int, type: int, what: int, start: int) -> None:
        kinds: list[dict[str, Any]] = [
            {"read_compacted": True},
            {"force_topic_creation": False},
            {"subscription_properties": [{"key": "k", "value": "v"}], "metadata": [{"key": "a", "value": "b"}]},
            {"start_message_rollback_duration_sec": 3600},
            {"start_message_id": self.start(start, -1)},
            {"keySharedMeta": {"keySharedMode": pb.KeySharedMode.AUTO_SPLIT, "allowOutOfOrderDelivery": True}},
        ]
        self._subscribe(link, ident, topic, "o", type, True, {**kinds[what], "consumer_name": f"o{ident}"})

    def start(self, number: int, batch_index: int) -> Any:
        """Return the message id to start at: the earliest, the latest, or that of a sent message."""
        if number < 0 or not self.pair.ours.places:
            ledger, entry = EARLIEST if number % 2 == 0 else LATEST
            return {"ledgerId": ledger, "entryId": entry}
        extra = () if batch_index < 0 else (("batch_index", batch_index),)
        return Place(number % len(self.pair.ours.places), extra=extra)

    def _subscribe(
        self, link: int, ident: int, topic: int, subscription: str, type: int, durable: bool, fields: dict[str, Any]
    ) -> None:
        full = self.topic(topic)

        def there(_: pb.BaseCommand) -> None:
            self.joined(link, ident, Consumer(full, subscription, type, durable))

        request = {
            "topic": full,
            "consumer_id": ident,
            "subscription": subscription,
            "subType": type,
            "durable": durable,
        }
        self.ask(self.need_link(link), Type.SUBSCRIBE, there, **request, **fields)

    @precondition(lambda self: self.consumers)
    @rule(which=ANY)
    def close_consumer(self, which: int) -> None:
        (link, ident), _ = pick(self.consumers, which)
        self.ask(link, Type.CLOSE_CONSUMER, self._without(link, ident), consumer_id=ident)

    @precondition(lambda self: self.consumers)
    @rule(which=ANY, force=SELDOM)
    def unsubscribe(self, which: int, force: bool) -> None:
        (link, ident), _ = pick(self.consumers, which)
        self.ask(link, Type.UNSUBSCRIBE, self._without(link, ident), consumer_id=ident, force=force)

    def _without(self, link: int, ident: int) -> Any:
        def gone(_: pb.BaseCommand) -> None:
            self.consumers.pop((link, ident), None)

        return gone
