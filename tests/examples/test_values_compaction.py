"""The example of a compaction engine, installed as its pyproject.toml says, with its part of the client."""

from __future__ import annotations

import tomllib
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import anyio
import pytest
from trio.testing import MockClock
from values_compaction.client import ValuesConverter, ValuesProcessor
from values_compaction.engine import ValuesCompactor

from pulsarium.broker.config import Config
from pulsarium.broker.model.compaction.compaction import GROUP, compactor
from pulsarium.broker.model.compaction.compactor import TwoPhaseCompactor
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.topic.persistent import PersistentTopic
from pulsarium.client.consumer.reader import Reader
from pulsarium.client.errors import BrokerMetadataError, InvalidMessage
from pulsarium.client.message_id import MessageId
from pulsarium.proto.compacted_values import PROPERTY
from pulsarium.proto.compression import decompress
from pulsarium.proto.entry import parse_metadata, payload_of
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.model.compaction.topics import Single, compact, compacted_entries, keyed_batch
from tests.broker.wire import plain
from tests.client.in_process import InProcess, in_process

EXAMPLE = Path(__file__).parents[2] / "examples" / "python" / "compaction_engine"
# the example of the PIP: compaction keeps the second message
BATCH: list[Single] = [("k0", b"v0"), ("k0", b"v1"), ("k1", b"v0"), ("k1", b"")]


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Write the files that an installation of the example leaves for `importlib.metadata`."""
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    name, version, points = project["name"], project["version"], project["entry-points"][GROUP]
    info = tmp_path / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    lines = [f"{each} = {target}\n" for each, target in points.items()]
    (info / "entry_points.txt").write_text("".join([f"[{GROUP}]\n", *lines]))
    monkeypatch.syspath_prepend(tmp_path)
    compactor.cache_clear()
    yield
    compactor.cache_clear()


class Stage(NamedTuple):
    """A broker with the engine, and a topic that it compacted."""

    inside: InProcess
    topic: PersistentTopic
    positions: list[Position]

    @asynccontextmanager
    async def reader(self, version: int = 22, *, example: bool = True) -> AsyncIterator[Reader]:
        converter, processor = (ValuesConverter(), ValuesProcessor()) if example else (None, None)
        async with (
            self.inside.client(max_protocol_version=version) as client,
            client.create_reader(
                "t",
                MessageId.earliest,
                read_compacted=True,
                payload_to_message_id_converter=converter,
                message_payload_processor=processor,
            ) as reader,
        ):
            yield reader


@asynccontextmanager
async def compacted_by_it(*entries: bytes, config: Config | None = None) -> AsyncIterator[Stage]:
    async with in_process(config) as inside:
        wire = await inside.wire()
        positions = await wire.publish(*(entries or (keyed_batch(*BATCH, compression=pb.LZ4),)))
        topic = inside.bed.topic()
        assert (await compact(topic)).status == "SUCCESS", topic.compaction.error
        yield Stage(inside, topic, positions)


async def all_of(reader: Reader) -> list[tuple[str, bytes, int]]:
    """Return the key, the value and the batch index of all messages."""
    found = []
    with anyio.fail_after(30):
        while await reader.has_message_available():
            message = await reader.read_next()
            found.append((message.partition_key(), message.data(), message.message_id().batch_index))
    return found


async def last_of(reader: Reader) -> MessageId:
    (found,) = await reader.get_last_message_ids()
    return found


def test_without_it_the_two_phases_compact() -> None:
    assert type(compactor()) is TwoPhaseCompactor


def test_the_broker_finds_it(installed: None) -> None:
    assert type(compactor()) is ValuesCompactor


@pytest.mark.req("S429-19")
async def test_its_payload_has_no_single_metadata(autojump_clock: MockClock, installed: None) -> None:
    async with compacted_by_it() as stage:
        ((position, entry),) = compacted_entries(stage.topic)
        metadata = parse_metadata(entry)
        assert position == stage.positions[0]
        assert (metadata.num_messages_in_batch, metadata.compression) == (4, pb.LZ4)
        assert [(each.key, each.value) for each in metadata.properties] == [(PROPERTY, "1")]
        assert metadata.compacted_batch_indexes == [1]
        payload = decompress(pb.LZ4, payload_of(entry), metadata.uncompressed_size)
        assert payload == b'[["djE=", {"partition_key": "k0"}]]'


@pytest.mark.req("S429-19", "S429-25")
@pytest.mark.parametrize("version", [21, 22])
async def test_a_reader_with_its_options_ends(autojump_clock: MockClock, installed: None, version: int) -> None:
    entries = [
        plain(b"alone", partition_key="a"),
        keyed_batch(("b", b"1"), ("b", b"2"), ("c", b"3")),
        keyed_batch(*BATCH),
    ]
    async with compacted_by_it(*entries) as stage, stage.reader(version) as reader:
        found = [("a", b"alone", -1), ("b", b"2", 1), ("c", b"3", 2), ("k0", b"v1", 1)]
        assert await last_of(reader) == MessageId(*stage.positions[-1], batch_index=1)
        assert await all_of(reader) == found


@pytest.mark.req("S429-19")
async def test_old_clients_need_field_31(
    autojump_clock: MockClock, installed: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broker cannot read the payload: what field 31 does not tell it, only a client can find out."""
    monkeypatch.setattr(ValuesCompactor, "with_field_31", False)
    async with compacted_by_it() as stage:
        async with stage.reader(21) as reader:
            with pytest.raises(BrokerMetadataError, match=r"^Failed to read last entry of the compacted Ledger "):
                await reader.get_last_message_ids()
        async with stage.reader(22) as reader:
            assert await last_of(reader) == MessageId(*stage.positions[0], batch_index=1)
            assert await all_of(reader) == [("k0", b"v1", 1)]


@pytest.mark.req("S429-24")
async def test_the_error_of_the_converter_is_raised(
    autojump_clock: MockClock, installed: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with compacted_by_it() as stage, stage.reader() as reader:
        await all_of(reader)  # a waiting message would be an answer too
        monkeypatch.setattr("values_compaction.client.retained_indexes", lambda metadata: [int("one")])
        for ask in (reader.get_last_message_ids, reader.has_message_available):
            with pytest.raises(ValueError, match="'one'"):
                await ask()


@pytest.mark.req("S429-25")
async def test_without_its_options_v22_says_so(
    autojump_clock: MockClock, installed: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ValuesCompactor, "with_field_31", False)
    async with compacted_by_it() as stage, stage.reader(example=False) as reader:
        with pytest.raises(InvalidMessage, match="last entry"):
            await reader.get_last_message_ids()


@pytest.mark.req("S429-26")
async def test_the_engine_compacts_entries_that_it_wrote(autojump_clock: MockClock, installed: None) -> None:
    async with compacted_by_it(keyed_batch(("a", b"1"), ("b", b"1"), ("a", b"2"))) as stage:
        wire = await stage.inside.wire()
        (later,) = await wire.publish(keyed_batch(("b", b"2"), ("c", b"")))
        assert (await compact(stage.topic)).status == "SUCCESS"
        async with stage.reader() as reader:
            assert await last_of(reader) == MessageId(*later, batch_index=0)
            assert await all_of(reader) == [("a", b"2", 2), ("b", b"2", 0)]
