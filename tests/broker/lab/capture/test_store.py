"""Stores of captured records: a file has all records, memory the newest ones. A full or slow disk ends the file."""

from __future__ import annotations

import errno
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarium.broker.lab.capture import store
from pulsarium.broker.lab.capture.store import File, Memory, Store
from pulsarium.capture.file import CaptureReader, CaptureRecord, CaptureWriter, EventKind, Header
from pulsarium.proto.commands import Direction

HEADER = Header(1, "a broker")
RECORDS = st.lists(st.binary(max_size=300), max_size=30)


def fill(kept: Store, frames: list[bytes]) -> None:
    writer = CaptureWriter(kept.write, HEADER)
    for number, data in zip(count(1), frames):
        writer.record(CaptureRecord(EventKind.FRAME, number, Direction.CLIENT, 0, 0, data, len(data)))


def read(kept: Store, after: int = 0, most: int = 1 << 20) -> list[tuple[int, bytes]]:
    """Return the number and the frame of each record. The test has put the number into the record's connection."""
    reader = CaptureReader()
    assert list(reader.feed(kept.head)) == []
    found: list[tuple[int, bytes]] = []
    while True:
        first, pieces = kept.read(after, most)
        if not pieces:
            return found
        records = list(reader.feed(b"".join(pieces)))
        assert [each.connection for each in records] == list(range(first, first + len(pieces)))
        found += [(each.connection, each.data) for each in records]
        after = first + len(pieces) - 1


@given(RECORDS, st.integers(0, 40), st.integers(1, 500))
def test_records_are_read_from_any_number_on(frames: list[bytes], after: int, most: int) -> None:
    expected = list(zip(count(1), frames))
    with TemporaryDirectory() as folder:
        path = Path(folder, "run.pulscap")
        for kept in (Memory(), File(path)):
            fill(kept, frames)
            assert read(kept, after, most) == expected[after:]
            assert read(kept) == expected
            kept.close()
            assert read(kept, after, most) == expected[after:]
        reader = CaptureReader()
        assert [each.data for each in reader.feed(path.read_bytes())] == frames
        assert (reader.header, reader.pending) == (HEADER, 0)


@given(RECORDS)
def test_memory_lets_go_of_the_oldest(frames: list[bytes]) -> None:
    kept = Memory(2000)
    fill(kept, frames)
    expected = list(zip(count(1), frames))
    assert read(kept) == expected[kept.dropped :]
    size = sum(len(data) + 100 for data in frames)  # the records take at least this much
    assert (kept.dropped > 0) >= (size > 4000)


def test_a_file_that_is_no_capture_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "broker.conf"
    path.write_text("clusterName=mine\n")
    with pytest.raises(OSError, match="is not a capture"):
        File(path)
    assert path.read_text() == "clusterName=mine\n"
    with pytest.raises(OSError, match="is not a file"):
        File(Path("/dev/null"))


def test_an_earlier_capture_is_written_over(tmp_path: Path) -> None:
    path = tmp_path / "run.pulscap"
    for frames in ([b"a" * 1000, b"b"], [b"c"]):
        kept = File(path)
        fill(kept, frames)
        kept.close()
    assert [each.data for each in CaptureReader().feed(path.read_bytes())] == [b"c"]


def test_a_full_disk_ends_it_and_the_file_is_good_so_far(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = File(tmp_path / "run.pulscap")
    fill(kept, [b"whole"])
    assert read(kept) == [(1, b"whole")]
    write = store._write

    def full(file: object, data: bytes) -> None:
        write(file, data[:7])  # type: ignore[arg-type]
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(store, "_write", full)
    fill(kept, [b"lost"])
    assert read(kept) == [(1, b"whole")]
    assert kept.trouble == "No space left on device"
    fill(kept, [b"later"])  # ignored: the file has ended
    kept.close()
    assert read(kept) == [(1, b"whole")]


def test_a_disk_that_is_too_slow_ends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "MOST_WAITING", 5000)
    monkeypatch.setattr(store, "FLUSH_SECONDS", 60)
    kept = File(tmp_path / "run.pulscap")
    fill(kept, [b"x" * 9000])
    assert kept.trouble == ""  # a big record does not make a disk slow
    fill(kept, [b"x" * 1000] * 10)
    assert "slower" in kept.trouble
    kept.close()


def test_a_file_is_of_one_capture_at_a_time(tmp_path: Path) -> None:
    path, link = tmp_path / "run.pulscap", tmp_path / "link.pulscap"
    kept = File(path)
    fill(kept, [b"a"])
    assert read(kept) == [(1, b"a")]
    link.symlink_to(path)
    with pytest.raises(BlockingIOError, match="another capture writes this file"):
        File(link)
    assert read(kept) == [(1, b"a")]
    kept.close()
    later = File(link)
    CaptureWriter(later.write, Header(2, "a broker")).opened(1, 0, 0)
    later.close()
    with pytest.raises(OSError, match="another capture"):
        kept.read(0, 1000)
