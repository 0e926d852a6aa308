"""Captures of a broker over streams: their contents, their beginning and end, and the secrets that they hide."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
import trio
import trio.testing

from pulsarium.broker.config import ServeOptions
from pulsarium.broker.lab import Lab
from pulsarium.broker.lab.capture import Capture
from pulsarium.broker.lab.capture.store import Memory
from pulsarium.broker.lab.faults import Corrupt, Delay, Duplicate
from pulsarium.broker.server import open_core
from pulsarium.broker.session.session import sessions_of
from pulsarium.capture.file import CaptureReader, EventKind
from pulsarium.proto.commands import Direction
from tests.broker.lab.attended import is_attended
from tests.broker.lab.capture.capture import told, violations
from tests.broker.wire import Bed, Type, plain

CLIENT, BROKER = Direction.CLIENT, Direction.BROKER


def lab_of(bed: Bed) -> Lab:
    return bed.broker.cluster.attached(Lab)


async def everyday(bed: Bed) -> None:
    wire = await bed.connect()
    await wire.producer(producer_name="p")
    await wire.subscribe()
    await wire.flow()
    [position] = await wire.publish(plain(b"hello", publish_time=bed.broker.clock.now_ms()))
    assert (await wire.message()).payload == b"hello"
    await wire.ack(position)
    await wire.aclose()
    with trio.fail_after(5):
        while sessions_of(bed.broker):
            await trio.testing.wait_all_tasks_blocked()


EVERYDAY = [
    *("client opened", "client CONNECT", "broker CONNECTED", "client PRODUCER", "broker PRODUCER_SUCCESS"),
    *("client SUBSCRIBE", "broker SUCCESS", "client FLOW", "client SEND", "broker SEND_RECEIPT", "broker MESSAGE"),
    *("client ACK", "broker ACK_RESPONSE", "client closed"),
]


async def test_every_frame_of_both_sides_is_captured(bed: Bed, tmp_path: Path) -> None:
    captures = lab_of(bed).captures
    in_memory, in_file = captures.start(), captures.start(tmp_path / "run.pulscap")
    assert captures.running == [in_memory, in_file]
    await everyday(bed)
    for capture in (in_memory, in_file):
        assert sorted(told(capture.records())) == sorted(EVERYDAY)
        assert [each for each in told(capture.records()) if each.startswith("client")] == [
            each for each in EVERYDAY if each.startswith("client")
        ]
        assert capture.frames == 12
        assert violations(capture.records()) == []
        capture.stop()
    assert captures.running == []
    reader = CaptureReader()
    from_file = list(reader.feed((tmp_path / "run.pulscap").read_bytes()))
    assert [each.data for each in from_file] == [each.data for each in in_memory.records()]
    assert reader.header is not None
    assert (reader.header.broker.partition(" ")[0], reader.header.profile) == ("Pulsarium", "pip")
    assert from_file[0].note == {"peer": "test:1"}


async def test_nothing_is_in_the_way_once_it_has_ended(bed: Bed) -> None:
    wire = await bed.connect()
    capture = lab_of(bed).captures.start()
    [session] = sessions_of(bed.broker)
    taps = [session.outgoing.tap]
    capture.stop()
    capture.stop()
    taps.append(session.outgoing.tap)
    assert [each is None for each in taps] == [False, True]
    assert not is_attended(bed.broker.cluster)
    await wire.alive()
    assert capture.frames == 0


async def test_a_connection_that_was_open_has_no_opening(bed: Bed) -> None:
    old = await bed.connect()
    capture = lab_of(bed).captures.start()
    await old.alive()
    young = await bed.connect()
    await young.alive()
    records = list(capture.records())
    assert [each.kind for each in records if each.connection == records[0].connection] == [
        EventKind.FRAME,
        EventKind.FRAME,
    ]
    assert next(each.kind for each in records if each.connection != records[0].connection) is EventKind.OPENED
    assert violations(records) == []


async def test_a_capture_says_which_side_closed_and_why(bed: Bed) -> None:
    capture = lab_of(bed).captures.start()
    wire = await bed.connect()
    await wire.send(Type.SEND, plain(b"x"), producer_id=7, sequence_id=0)
    await wire.closed()
    assert told(capture.records())[-1].startswith("broker closed: ")


async def test_no_secret_is_kept(bed: Bed, tmp_path: Path) -> None:
    capture = lab_of(bed).captures.start(tmp_path / "run.pulscap")
    await bed.connect(auth_method_name="token", auth_data=b"secret-of-the-client")
    capture.stop()
    data = (tmp_path / "run.pulscap").read_bytes()
    assert b"secret" not in data
    assert b"token" in data


async def test_entries_are_cut_where_asked(bed: Bed) -> None:
    capture = lab_of(bed).captures.start(keep_entry=30)
    wire = await bed.connect()
    await wire.producer()
    await wire.publish(plain(b"y" * 500))
    [sent] = [each for each in capture.records() if each.size > 500]
    assert sent.cut
    assert len(sent.data) < 100


async def test_several_brokers_are_one_capture(tmp_path: Path) -> None:
    options = ServeOptions(brokers=2, capture=tmp_path / "run.pulscap")
    async with open_core(options) as broker, trio.open_nursery() as nursery:
        bed = Bed(broker, nursery)
        await bed.connect(broker=0)
        await bed.connect(broker=1)
        nursery.cancel_scope.cancel()
    records = list(CaptureReader().feed((tmp_path / "run.pulscap").read_bytes()))
    assert len({each.note["broker"] for each in records if each.kind is EventKind.OPENED}) == 2
    assert [each.kind for each in records].count(EventKind.CLOSED) == 2


async def test_a_failed_write_ends_the_capture_and_not_the_broker(
    bed: Bed, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    lab = lab_of(bed)
    other = lab.captures.start()
    capture = lab.captures.start(tmp_path / "run.pulscap")
    last = lab.captures.start()
    wire = await bed.connect()
    capture._store.trouble = "No space left on device"
    with caplog.at_level(logging.WARNING, "pulsarium.capture"):
        await wire.alive()
        await wire.alive()
    assert not capture.running
    assert capture.reason == "No space left on device"
    assert [str(each.msg) for each in caplog.records] == [
        f'a capture ended early capture={tmp_path / "run.pulscap"} reason="No space left on device" frames=3'
    ]
    assert [len(told(each.records())) for each in (other, last)] == [7, 7]


async def test_one_file_is_for_one_capture(bed: Bed, tmp_path: Path) -> None:
    captures = lab_of(bed).captures
    captures.start(tmp_path / "run.pulscap")
    with pytest.raises(BlockingIOError, match="another capture writes this file"):
        captures.start(tmp_path / "run.pulscap")
    with pytest.raises(OSError, match="No such file"):
        captures.start(tmp_path / "missing" / "run.pulscap")
    assert len(captures.running) == 1


async def test_the_last_that_ended_are_kept(bed: Bed) -> None:
    captures = lab_of(bed).captures
    made = [captures.start() for _ in range(12)]
    for each in made:
        each.stop()
    running = captures.start()
    assert captures.all == [*made[4:], running]
    assert captures.find(running.id) is running
    captures.forget(running)
    assert (captures.find(running.id), running.running) == (None, False)


async def test_memory_is_bounded(bed: Bed) -> None:
    capture: Capture = lab_of(bed).captures.start()
    capture._store._most = 3000  # type: ignore[attr-defined]
    assert isinstance(capture._store, Memory)
    wire = await bed.connect()
    await wire.producer()
    await wire.publish(*[plain(b"z" * 100)] * 50)
    records = list(capture.records())
    assert capture.dropped + len(records) == capture.records_written
    assert capture.dropped > 0
    assert violations(records) == []


async def test_a_capture_notes_the_actions_of_faults(bed: Bed) -> None:
    lab = lab_of(bed)
    capture = lab.captures.start()
    wire = await bed.connect()
    await wire.producer()
    with lab.faults.add(Duplicate(), "SEND_RECEIPT") as rule:
        await wire.write(wire.sends(plain(b"x")))
        await wire.receipts(2)
    told_of = [each.note for each in capture.records() if each.note.get("fault")]
    assert told_of
    assert {(each["fault"], each["did"]) for each in told_of} == {(rule.id, "duplicated")}


async def test_a_capture_may_have_the_time_at_which_the_broker_sent_a_delayed_frame(bed: Bed) -> None:
    lab = lab_of(bed)
    as_moved, as_sent = lab.captures.start(), lab.captures.start(as_sent=True)
    publisher, other = await bed.connect(), await bed.connect()
    await publisher.producer()
    await other.subscribe()
    with lab.faults.add(Delay(3600), "SEND_RECEIPT"):
        await publisher.write(publisher.sends(plain(b"x")))
        await trio.testing.wait_all_tasks_blocked()
        await other.flow()
        await other.message()
    await publisher.receipts(1)

    def order(capture: Capture) -> list[str]:
        in_time = sorted(capture.records(), key=lambda record: record.monotonic_ns)
        return [each for each in told(in_time) if each in ("broker SEND_RECEIPT", "broker MESSAGE")]

    assert order(as_moved) == ["broker MESSAGE", "broker SEND_RECEIPT"]
    assert order(as_sent) == ["broker SEND_RECEIPT", "broker MESSAGE"]


@pytest.mark.parametrize("number", range(8))
async def test_a_damaged_frame_keeps_no_secret(bed: Bed, number: int) -> None:
    """A damaged byte, whichever it is, may make the secret look like another field."""
    lab = lab_of(bed)
    capture = lab.captures.start()
    with lab.faults.add(Corrupt("byte"), "CONNECT", seed=number):
        wire = bed.dial()
        await wire.send(
            Type.CONNECT, client_version="wire", protocol_version=21, auth_method_name="token", auth_data=b"s" * 60
        )
        await wire.rest()
    [damaged] = [each for each in capture.records() if each.note.get("did") == "corrupted"]
    assert damaged.size > 70
    assert b"ssss" not in damaged.data
