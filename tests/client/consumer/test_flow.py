from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pulsarium.client.consumer.flow import OnDemand, Permits


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
    assert given + permits.rest() == sum(freed)
    assert permits.rest() == 0


def test_a_new_connection_begins_with_all() -> None:
    permits = Permits(10)
    permits.opened()
    assert permits.free(4) == 0
    assert permits.opened() == 10
    assert permits.free(4) == 0
    assert permits.free(1) == 5


def test_none_while_paused() -> None:
    permits = Permits(4, paused=True)
    assert permits.opened() == 0
    assert permits.resume() == 4
    permits.pause()
    assert (permits.free(1), permits.free(1), permits.rest(), permits.opened()) == (0, 0, 0, 0)
    assert permits.resume() == 4
    permits.pause()
    assert permits.free(1) == 0
    assert permits.resume() == 0  # not worth it
    assert permits.free(1) == 2


def test_without_a_queue_one_for_each_who_waits() -> None:
    permits = OnDemand()
    assert permits.opened() == 0
    assert permits.wait() == 1
    assert permits.wait() == 1
    permits.waited()  # it got a message, which is freed when it takes it
    assert permits.free(1) == 0
    permits.waited()  # it was cancelled
    assert permits.wait() == 0  # and this one uses its permit
    assert permits.free(1) == 1  # which came to nothing
    assert permits.opened() == 1  # on another connection
    permits.waited()
    assert permits.opened() == 0


def test_without_a_queue_none_while_paused() -> None:
    permits = OnDemand(paused=True)
    assert (permits.opened(), permits.wait(), permits.wait()) == (0, 0, 0)
    assert permits.resume() == 2


@given(st.lists(st.sampled_from(["wait", "got", "cancelled", "nothing", "open"])))
def test_without_a_queue_there_are_never_more_permits_than_were_waited_for(steps: list[str]) -> None:
    permits = OnDemand()
    permits.opened()
    waiting = held = most = 0
    for step in steps:
        if step == "wait":
            waiting += 1
            held += permits.wait()
        elif step == "open":
            held = permits.opened()
        elif step == "nothing" and held:
            held += permits.free(1) - 1
        elif step in ("got", "cancelled") and waiting:
            waiting -= 1
            permits.waited()
            if step == "got" and held:
                held += permits.free(1) - 1
        most = max(most, waiting)
        assert waiting <= held <= most
