from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pulsarium.client.consumer.flow import Permits


@given(st.integers(1, 20), st.lists(st.integers(0, 5)))
def test_permits_go_back_by_halves_and_none_is_lost(size: int, freed: list[int]) -> None:
    permits = Permits(size)
    assert permits.opened() == size
    given = 0
    for index, count in enumerate(freed, 1):
        now = permits.free(count)
        assert now == 0 or now >= max(1, size // 2)
        given += now
        assert sum(freed[:index]) - given < max(1, size // 2)


def test_a_new_connection_begins_with_all() -> None:
    permits = Permits(10)
    permits.opened()
    assert permits.free(4) == 0
    assert permits.opened() == 10
    assert permits.free(4) == 0
    assert permits.free(1) == 5
