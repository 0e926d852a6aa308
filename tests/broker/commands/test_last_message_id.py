"""GET_LAST_MESSAGE_ID of a compacted topic (PIP-429).

GET_LAST_MESSAGE_ID, which leaves the last compacted entry compressed wherever it can (PIP-429).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pytest

from pulsarium.broker.config import PIP, PULSAR_4_2, Profile
from pulsarium.broker.model.ledger.position import Position
from pulsarium.proto import compression
from pulsarium.proto.compression import compress, decompress
from pulsarium.proto.entry import build, parse_metadata, payload_of, strip_broker_metadata, with_broker_metadata
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.last_entry import last_kept, take_apart
from tests.broker.commands.last_message_id import EXAMPLE, Last, Stage, last, stage_of
from tests.broker.compacted import Retained, compacted, compacted_batch, trim
from tests.broker.model.compaction.topics import compact, keyed_batch
from tests.broker.wire import Bed, Type, Wire, batch_of, plain, serving

NOWHERE = Position(-1, -1)
V22, V21 = 22, 21


@pytest.fixture
async def stage(bed: Bed) -> Stage:
    return await stage_of(bed)


@pytest.mark.req("S429-02", "S429-07")
async def test_a_new_client_gets_the_last_entry(stage: Stage) -> None:
    new, old = await stage.client(V22), await stage.client(V21)
    found, before = await last(new), await last(old)
    assert found == Last(stage.positions[3], None, Position(stage.positions[0].ledger_id, -1), EXAMPLE)
    assert before == found._replace(batch_index=1, buffer=b"")
    assert take_apart(found.buffer).metadata.compacted_batch_indexes == [1]


@pytest.mark.req("S429-02")
async def test_the_brokers_own_metadata_stays_behind(bed: Bed) -> None:
    stage = await stage_of(bed, with_broker_metadata(EXAMPLE, pb.BrokerEntryMetadata(broker_timestamp=1, index=6)))
    assert (await last(await stage.client(V22))).buffer == EXAMPLE


@pytest.mark.req("S429-02")
async def test_the_last_entry_may_be_a_single_message(bed: Bed) -> None:
    stage = await stage_of(bed, plain(b"v"))
    assert (await last(await stage.client(V22)))[1:] == (None, Position(stage.positions[0].ledger_id, -1), plain(b"v"))
    assert (await last(await stage.client(V21))).batch_index == -1


@pytest.mark.req("S429-03", "S429-09", "S429-13")
async def test_an_old_client_is_told_the_index(stage: Stage) -> None:
    for version in (12, V21):
        found = await last(await stage.client(version))
        assert (found.position, found.batch_index, found.buffer) == (stage.positions[3], 1, b"")


@pytest.mark.req("S429-08")
@pytest.mark.parametrize("profile", [PULSAR_4_2, replace(PIP, max_protocol_version=21)], ids=["pulsar-4.2", "21"])
async def test_an_old_broker_never_sends_it(autojump_clock: object, profile: Profile) -> None:
    async with serving(profile=profile) as bed:
        stage = await stage_of(bed)
        found = await last(await stage.client(V22))
        assert (found.position, found.batch_index, found.buffer) == (stage.positions[3], 1, b"")


async def test_buffers_in_answers_that_wait_are_bounded(bed: Bed) -> None:
    """Small requests in one read must not take gigabytes. Once a megabyte of answers waits, the broker sends the batch
    index."""
    large = compacted_batch(b"x" * 400_000, b"y", None, compacted_batch_indexes=[0, 1])
    new = await (await stage_of(bed, large)).client(V22)
    await new.write(b"".join(new.numbered(Type.GET_LAST_MESSAGE_ID, consumer_id=0) for _ in range(1000)))
    answers = [await new.next() for _ in range(1000)]
    assert [len(buffer) > 0 for _, buffer in answers] == [True] * 3 + [False] * 997
    found = [answer.getLastMessageIdResponse.last_message_id for answer, _ in answers]
    assert [each.HasField("batch_index") for each in found] == [False] * 3 + [True] * 997
    assert {each.batch_index for each in found[3:]} == {1}
    assert (await last(new)).buffer == large


@pytest.mark.req("S429-04")
async def test_a_consumer_without_read_compacted_gets_the_last_entry_of_the_topic(stage: Stage) -> None:
    found = await last(await stage.client(V22, read_compacted=False))
    assert (found.position, found.batch_index, found.buffer) == (stage.positions[3], 3, b"")


@pytest.mark.req("S429-05")
async def test_a_message_above_the_compaction_horizon_has_no_compacted_buffer(stage: Stage) -> None:
    (newer,) = await stage.sender.publish(batch_of(b"a", b"b"))
    found = await last(await stage.client(V22))
    assert (found.position, found.batch_index, found.buffer) == (newer, 1, b"")


@pytest.mark.req("S429-05")
async def test_a_topic_that_was_never_compacted(stage: Stage) -> None:
    stage.retained.horizon = None
    found = await last(await stage.client(V22))
    assert (found.position, found.batch_index, found.buffer) == (stage.positions[3], 3, b"")


@pytest.mark.req("S429-33")
async def test_an_empty_topic_has_no_last_message_id(bed: Bed, wire: Wire) -> None:
    await wire.subscribe(read_compacted=False)
    compacted(bed.topic(), Retained(NOWHERE, {})).horizon = None
    assert (await last(wire))[:2] == (NOWHERE, -1)
    await wire.subscribe(name="compacted", read_compacted=True, consumer_id=1)
    assert (await last(wire, 1))[:2] == (NOWHERE, -1)


@pytest.mark.req("S429-16")
@pytest.mark.parametrize("version", [V21, V22])
async def test_a_compacted_topic_that_kept_nothing_has_no_last_message_id(stage: Stage, version: int) -> None:
    """Pulsar's answer is in transcript 147."""
    stage.retained.entries.clear()
    found = await last(await stage.client(version))
    assert (found.position, found.batch_index, found.buffer) == (NOWHERE, 0, b"")


async def test_a_trimmed_topic_has_what_was_kept_of_it(stage: Stage) -> None:
    trim(stage.bed.topic())
    assert (await last(await stage.client(V21)))[:2] == (stage.positions[3], 1)
    assert (await last(await stage.client(V21, read_compacted=False)))[:2] == (NOWHERE, -1)


@pytest.mark.req("S429-07")
async def test_the_mark_is_the_subscriptions(stage: Stage) -> None:
    new = await stage.client(V22)
    await new.ack(stage.positions[0])
    assert (await last(new)).mark_delete == stage.positions[0]


@pytest.mark.req("S429-17")
async def test_an_encrypted_batch(bed: Bed) -> None:
    keys = [{"key": "k", "value": b"secret"}]
    stage = await stage_of(bed, plain(b"\x03...", num_messages_in_batch=4, encryption_keys=keys))
    assert (await last(await stage.client(V21)))[:2] == (stage.positions[3], 3)


@pytest.mark.req("S429-20")
async def test_an_older_compactor_left_no_indexes(bed: Bed) -> None:
    stage = await stage_of(bed, compacted_batch(None, b"v1", None, None))
    assert (await last(await stage.client(V21)))[:2] == (stage.positions[3], 1)


@pytest.mark.req("S429-13", "S429-20")
async def test_a_compressed_batch(bed: Bed) -> None:
    whole = take_apart(compacted_batch(None, b"v1", None, None)).payload
    fields: dict[str, Any] = {"num_messages_in_batch": 4, "compression": pb.LZ4, "uncompressed_size": len(whole)}
    stage = await stage_of(bed, plain(compress(pb.LZ4, whole), **fields))
    assert (await last(await stage.client(V21)))[:2] == (stage.positions[3], 1)


@pytest.mark.req("S429-18", "S429-19")
async def test_a_payload_of_another_form(bed: Bed) -> None:
    """The broker cannot tell which message is the last. A client with its own converter can."""
    odd = plain(b"one;two", num_messages_in_batch=2)
    stage = await stage_of(bed, odd)
    old = await stage.client(V21)
    code, text = await old.refused(Type.GET_LAST_MESSAGE_ID, consumer_id=0)
    assert code == pb.MetadataError
    assert text.startswith("Failed to read last entry of the compacted Ledger ")
    await old.alive()
    assert (await last(await stage.client(V22))).buffer == odd


@pytest.mark.req("S429-19")
async def test_a_payload_of_another_form_with_indexes(bed: Bed) -> None:
    stage = await stage_of(bed, plain(b"one;two", num_messages_in_batch=2, compacted_batch_indexes=[0]))
    assert (await last(await stage.client(V21)))[:2] == (stage.positions[3], 0)


@pytest.mark.req("S429-02", "S429-10", "S429-13", "S429-14")
async def test_the_last_message_id_of_the_proposals_example(bed: Bed) -> None:
    """Compaction itself has written the entry. The answer is the same after an unload."""
    sender = await bed.connect()
    await sender.producer()
    example = keyed_batch(("k0", b"v0"), ("k0", b"v1"), ("k1", b"v0"), ("k1", b""), compression=pb.LZ4)
    (position,) = await sender.publish(example, num_messages=4)
    await compact(bed.topic())
    for unloaded in (False, True):
        if unloaded:
            bed.broker.topics.unload(bed.topic().name)
        new, old = await bed.connect(V22), await bed.connect(V21)
        for wire, name in ((new, "new"), (old, "old")):
            await wire.subscribe(name=f"{name}{unloaded}", read_compacted=True, initialPosition=1)
        found = await last(new)
        assert (found.position, found.batch_index) == (position, None)
        metadata, _, payload = take_apart(found.buffer)
        assert (metadata.compression, metadata.num_messages_in_batch) == (pb.LZ4, 4)
        assert last_kept(decompress(pb.LZ4, payload, metadata.uncompressed_size), 4) == 1
        assert (await last(old))[:2] == (position, 1)
        await old.flow()
        assert strip_broker_metadata((await old.message()).entry) == found.buffer
        await old.quiet()


@pytest.mark.req("S429-32")
@pytest.mark.parametrize("type", [pb.CommandSubscribe.Shared, pb.CommandSubscribe.Key_Shared])
async def test_shared_subscriptions_cannot_read_compacted(wire: Wire, type: int) -> None:
    fields = {"subscription": "s", "subType": type, "consumer_id": 0, "read_compacted": True}
    refusal = await wire.refused(Type.SUBSCRIBE, topic="persistent://public/default/t", **fields)
    assert refusal == (pb.NotAllowedError, "readCompacted only allowed on failover or exclusive subscriptions")
    fields["subType"] = pb.CommandSubscribe.Exclusive
    refusal = await wire.refused(Type.SUBSCRIBE, topic="non-persistent://public/default/t", **fields)
    assert refusal == (pb.NotAllowedError, "readCompacted only valid on persistent topics")


@pytest.mark.req("S429-01")
@pytest.mark.parametrize(("asked", "agreed"), [(21, 21), (22, 22), (23, 22)])
async def test_the_highest_version(bed: Bed, asked: int, agreed: int) -> None:
    assert (await bed.dial().connect(asked)).protocol_version == agreed


BATCH: list[tuple[str | None, bytes]] = [("a", b"1"), ("a", b"2"), ("b", b"3"), ("c", b"")]


@pytest.fixture
def decompressed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the format of each payload that is decompressed."""
    names: list[str] = []

    def noting(name: str, method: Callable[[bytes, int], bytes]) -> Callable[[bytes, int], bytes]:
        def decompress(data: bytes, size: int) -> bytes:
            names.append(name)
            return method(data, size)

        return decompress

    methods = {kind: (name, noting(name, how), most) for kind, (name, how, most) in compression._METHODS.items()}
    monkeypatch.setattr(compression, "_METHODS", MappingProxyType(methods))
    return names


async def asking(bed: Bed, version: int) -> Wire:
    wire = await bed.connect(version)
    await wire.subscribe(name=f"s{version}", read_compacted=True, initialPosition=1)
    return wire


async def last_index(wire: Wire) -> int | None:
    """Return the batch index of the last message, or None if the broker sent the whole entry."""
    await wire.write(wire.numbered(Type.GET_LAST_MESSAGE_ID, consumer_id=0))
    command, buffer = await wire.next()
    found = command.getLastMessageIdResponse.last_message_id
    assert found.HasField("batch_index") is not bool(buffer), command
    return None if buffer else found.batch_index


@pytest.mark.req("S429-02", "S429-16", "S429-20")
@pytest.mark.parametrize("kind", [pb.LZ4, pb.ZLIB, pb.ZSTD, pb.SNAPPY])
async def test_the_last_compacted_entry_stays_compressed(
    bed: Bed, wire: Wire, decompressed: list[str], kind: Any
) -> None:
    await wire.producer()
    await wire.publish(keyed_batch(*BATCH, compression=kind), num_messages=4)
    topic = bed.topic()
    await compact(topic)
    assert decompressed  # compaction had to decompress
    decompressed.clear()
    new, old = await asking(bed, 22), await asking(bed, 21)
    assert [await last_index(new), await last_index(old)] == [None, 2]
    assert decompressed == []
    # The entry as an older engine left it, without field 31.
    position, entry = topic.compaction.compacted.last_entry() or pytest.fail("nothing is left")
    metadata = parse_metadata(entry)
    del metadata.compacted_batch_indexes[:]
    compacted(topic, Retained(position, {position: build(metadata, payload_of(entry))}))
    assert await last_index(new) is None
    assert decompressed == []
    assert await last_index(old) == 2
    assert len(decompressed) == 1
