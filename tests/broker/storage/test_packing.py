from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarium.broker.storage.interface import StorageError
from pulsarium.broker.storage.segments import header_size, pack, unpack

entry_lists = st.lists(st.binary(max_size=40), max_size=20)


@given(entry_lists)
def test_packed_entries_unpack(entries: list[bytes]) -> None:
    data = pack(entries)
    assert unpack(data) == entries
    assert len(data) == header_size(len(entries)) + sum(map(len, entries))


@given(entry_lists, st.integers(0, 25), st.integers(0, 25))
def test_a_slice_is_a_slice_of_the_entries(entries: list[bytes], start: int, stop: int) -> None:
    assert unpack(pack(entries), start, stop) == entries[start:stop]


def test_layout_is_little_endian_and_stays() -> None:
    assert pack([b"ab", b"", b"c"]) == bytes.fromhex("03000000 02000000 00000000 01000000") + b"abc"


@given(entry_lists, st.data())
def test_a_damaged_value_is_an_error(entries: list[bytes], data: st.DataObject) -> None:
    packed = pack(entries)
    for damaged in (packed[: data.draw(st.integers(0, len(packed) - 1))], packed + b"x"):
        with pytest.raises(StorageError, match="damaged"):
            unpack(damaged)
