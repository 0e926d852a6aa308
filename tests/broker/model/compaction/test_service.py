"""Compaction engines that the broker finds by their entry point."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint
from typing import Any

import pytest

from pulsarium.broker.config import ConfigError, ServeOptions
from pulsarium.broker.model.compaction import compaction as service
from pulsarium.broker.model.compaction.compactor import TwoPhaseCompactor, Writer
from pulsarium.broker.model.compaction.raw import RawReader, each
from pulsarium.broker.model.ledger.position import EARLIEST
from pulsarium.broker.server import open_core
from pulsarium.proto.entry import build, parse_metadata
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.model.compaction.topics import compact, compacted_entries, publish, single, topic_of
from tests.broker.wire import Bed


class Columns(TwoPhaseCompactor):
    """An engine that writes one entry in its own form, without SingleMessageMetadata, at the last position."""

    def compact(
        self, reader: RawReader, writer: Writer, ready: Callable[[], None], *, retain_null_key: bool
    ) -> Iterator[bool]:
        keys: dict[str, int] = {}
        last = EARLIEST
        for count, message in enumerate(each(reader, ready)):
            if message is not None:
                keys[parse_metadata(message.entry).partition_key] = count
                last = message.position
            yield message is None
        metadata = pb.MessageMetadata(producer_name="columns", sequence_id=0, publish_time=1)
        metadata.properties.add(key="retained", value=",".join(map(str, keys.values())))
        writer.write(last, build(metadata, b"in columns"))


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    def entry_points(*, group: str) -> list[EntryPoint]:
        assert group == service.GROUP
        return [EntryPoint("columns", f"{__name__}:Columns", group)]

    monkeypatch.setattr(service, "entry_points", entry_points)
    service.compactor.cache_clear()
    yield
    service.compactor.cache_clear()


async def test_an_installed_engine_writes_what_it_likes(installed: None, bed: Bed) -> None:
    topic = topic_of(bed.broker)
    positions = publish(bed.broker, single("a", b"1"), single("b", b"1"), single("a", b"2"))
    await compact(topic)
    ((position, entry),) = compacted_entries(topic)
    assert position == positions[-1]
    assert [each.value for each in parse_metadata(entry).properties] == ["2,1"]
    assert entry.endswith(b"in columns")
    assert topic.compaction.compacted.horizon == positions[-1]


async def test_an_engine_that_cannot_be_loaded_fails_the_compaction(monkeypatch: pytest.MonkeyPatch, bed: Bed) -> None:
    found = [EntryPoint("broken", "no.such.module:Engine", service.GROUP)]
    monkeypatch.setattr(service, "entry_points", lambda *, group: found)
    service.compactor.cache_clear()
    topic = topic_of(bed.broker)
    publish(bed.broker, single("a", b"1"))
    compaction = await compact(topic)
    assert (compaction.status, compaction.error) == ("ERROR", "No module named 'no'")
    monkeypatch.undo()
    await compact(topic)
    assert compaction.status == "SUCCESS"


def test_without_an_installed_engine_ours_compacts(monkeypatch: pytest.MonkeyPatch) -> None:
    nothing: Any = []
    monkeypatch.setattr(service, "entry_points", lambda *, group: nothing)
    service.compactor.cache_clear()
    assert isinstance(service.compactor(), TwoPhaseCompactor)
    service.compactor.cache_clear()


class Picky:
    """An engine with an option that refuses one value of it."""

    def __init__(self, *, work_dir: str = "", **others: str) -> None:
        if work_dir == "nowhere":
            raise ValueError("work-dir: nowhere is no folder")
        self.given = (work_dir, others)


def picky(*, group: str) -> list[EntryPoint]:
    return [
        EntryPoint("picky", f"{__name__}:Picky", group),
        EntryPoint("ours", f"pulsarium.{__name__}:Picky", group),
        EntryPoint("lacking", "no.such.module:Engine", group),
    ]


def test_an_engine_is_asked_for_by_name_with_options(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "entry_points", picky)
    made = service.make_engine("picky", [("work-dir", "/w"), ("spark.some-key", "1")])
    assert isinstance(made, Picky)
    assert made.given == ("/w", {"spark.some-key": "1"})
    assert type(service.make_engine("two-phase")) is TwoPhaseCompactor


@pytest.mark.parametrize(
    ("name", "options", "reason"),
    [
        ("spork", (), "no such engine is installed; use one of: lacking, ours, picky, two-phase"),
        ("lacking", (), "No module named 'no'"),
        ("picky", (("work-dir", "nowhere"),), "work-dir: nowhere is no folder"),
        ("two-phase", (("a", "b"),), "TwoPhaseCompactor.__init__() got an unexpected keyword argument 'a'"),
        ("two-phase", (("key-memory", "1g"),), "key-memory must be a number of bytes of at least 1, not 1g"),
    ],
)
def test_an_engine_that_cannot_be_made_is_refused_with_the_reason(
    name: str, options: tuple[tuple[str, str], ...], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "entry_points", picky)
    with pytest.raises(ConfigError) as raised:
        service.make_engine(name, options)
    assert str(raised.value) == f"compaction engine {name}: {reason}"


def test_an_engine_of_ours_has_to_be_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "entry_points", lambda *, group: picky(group=group)[1:2])
    service.compactor.cache_clear()
    assert type(service.compactor()) is TwoPhaseCompactor
    service.compactor.cache_clear()


@pytest.mark.trio
async def test_a_run_has_the_engine_that_it_was_asked_for(autojump_clock: object, installed: None) -> None:
    """An engine that the run names is preferred to an installed one."""
    async with open_core(ServeOptions(compaction_engine="two-phase")) as broker:
        topic = topic_of(broker)
        publish(broker, single("a", b"1"))
        await compact(topic)
        ((_, entry),) = compacted_entries(topic)
        assert entry == single("a", b"1")
