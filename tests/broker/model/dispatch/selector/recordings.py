"""Consumers for selectors, and helpers that read the consumers of transcripts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast

from pulsarium.broker.model.dispatch.selector import Selector
from pulsarium.broker.model.subscription.base import Consumer
from pulsarium.broker.model.subscription.options import HashRanges, KeySharedOptions, Range
from pulsarium.conformance.recordings.releases import PULSAR_4
from pulsarium.proto.entry import parse_metadata
from pulsarium.proto.generated import PulsarApi_pb2 as pb


@dataclass(eq=False)
class Member:
    """A minimal consumer, with only the fields that selectors read."""

    name: str
    consumer_id: int
    key_shared: KeySharedOptions
    client: SimpleNamespace
    subscription: PersistentSubscription


def consumer(name: str, *ranges: Range, consumer_id: int = 0) -> Consumer:
    client = SimpleNamespace(address="/127.0.0.1:43354")
    options = KeySharedOptions(pb.STICKY, HashRanges(ranges))
    return cast(Consumer, Member(name, consumer_id, options, client, PersistentSubscription()))


class PersistentSubscription:
    """A subscription with only the names that errors show."""

    topic = SimpleNamespace(name="persistent://tr/subscribe-sticky/t")
    name = "k"


def lines(number: int) -> Iterator[dict[str, Any]]:
    """Read the lines of a transcript."""
    (path,) = PULSAR_4.folder.glob(f"{number:03}-*.jsonl")
    for line in path.read_text().splitlines():
        yield json.loads(line)


def deliveries(number: int) -> Iterator[tuple[pb.MessageMetadata, str, int]]:
    """Yield the metadata, the connection and the consumer id of each MESSAGE in a transcript."""
    for line in lines(number):
        if line.get("type") == "MESSAGE":
            frame = bytes.fromhex(line["raw"])
            entry = frame[8 + int.from_bytes(frame[4:8]) :]
            yield parse_metadata(entry), line["conn"], line["cmd"]["consumer_id"]


def owners(selector: Selector, first: int, last: int) -> list[Consumer | None]:
    """Return the owner of each hash according to `ranges`, and assert that no hash has two owners."""
    found: list[Consumer | None] = [None] * (last - first + 1)
    for member, ranges in selector.ranges().items():
        for start, end in ranges:
            for point in range(max(start, first), min(end, last) + 1):
                assert found[point - first] is None
                found[point - first] = member
    return found
