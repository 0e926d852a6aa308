"""Key_Shared with sticky ranges, which the clients choose."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarium.broker.model.dispatch.selector import StickyRanges
from pulsarium.broker.model.errors import ConsumerAssignError, OwnerMustAnswerError
from pulsarium.broker.model.subscription.base import Consumer
from pulsarium.broker.model.subscription.options import Range
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.model.dispatch.selector.recordings import consumer, lines


def refused(made: StickyRanges, newcomer: Consumer) -> str:
    before = made.ranges()
    with pytest.raises(ConsumerAssignError) as refusal:
        made.add(newcomer)
    assert refusal.value.code == pb.ConsumerAssignError
    assert made.ranges() == before
    return refusal.value.text


@pytest.mark.req("C-10")
def test_sticky_ranges_are_judged_as_recorded() -> None:
    """Transcript 055 has the SUBSCRIBE commands and the texts of their errors."""
    requests: dict[tuple[str, int], Consumer] = {}
    made, served = StickyRanges(), 0
    for line in lines(55):
        key = line.get("conn", ""), line.get("cmd", {}).get("request_id", 0)
        if line.get("type") == "SUBSCRIBE":
            cmd = line["cmd"]
            ranges = [(each["start"], each["end"]) for each in cmd["keySharedMeta"].get("hashRanges", ())]
            requests[key] = consumer(cmd["consumer_name"], *ranges, consumer_id=cmd["consumer_id"])
        elif key in requests and line["type"] == "SUCCESS":
            made.add(requests.pop(key))
            served += 1
        elif key in requests and (text := line["cmd"]["message"]).startswith("Range conflict"):
            with pytest.raises(OwnerMustAnswerError) as conflict:
                made.add(requests.pop(key))
            assert conflict.value.refusal.code == pb.ConsumerAssignError
            ours = conflict.value.refusal.text
            assert ours.split("[")[0].removesuffix("/127.0.0.1:43354}") == text.split("[")[0]
            served += 1
        elif key in requests and line["type"] == "ERROR":
            assert refused(made, requests.pop(key)) == text
            served += 1
    assert served == 7
    assert list(made.ranges().values()) == [[(0, 70000)]]


@pytest.mark.req("C-10")
def test_the_owner_of_an_overlapping_range_is_asked() -> None:
    made, one, two = StickyRanges(), consumer("one", (0, 10), (20, 30)), consumer("two", (11, 19))
    made.add(one)
    made.add(two)
    for conflicting, owner in [((30, 40), one), ((10, 40), one), ((11, 11), two), ((15, 100), two)]:
        with pytest.raises(OwnerMustAnswerError) as conflict:
            made.add(consumer("new", (150, 160), conflicting))
        assert conflict.value.owner is owner.client
    newcomer = consumer("new", (150, 160), (31, 40))
    made.add(newcomer)
    assert set(made.ranges()) == {one, two, newcomer}


@pytest.mark.req("C-10")
def test_sticky_ranges_that_make_no_sense_are_refused() -> None:
    made = StickyRanges()
    made.add(consumer("owner", (0, 5)))
    assert refused(made, consumer("a")) == "Ranges for KeyShared policy must not be empty."
    assert (
        refused(made, consumer("a", (50, 200), (0, 100)))
        == "Consumer's own ranges conflict: [0,100] overlaps with [50,200]"
    )
    assert refused(made, consumer("a", (1, 2), (9, 8))) == "Fixed hash range start > end for range: [9,8]"


@pytest.mark.req("B-10")
def test_gaps_between_sticky_ranges_belong_to_nobody() -> None:
    made, one, two = StickyRanges(), consumer("one", (0, 10), (40, 65535)), consumer("two", (20, 30))
    made.add(one)
    made.add(two)
    found = {point: made.select(point) for point in (1, 10, 11, 19, 20, 30, 31, 39, 40, 65535)}
    assert found == {1: one, 10: one, 11: None, 19: None, 20: two, 30: two, 31: None, 39: None, 40: one, 65535: one}
    made.remove(one)
    assert made.select(1) is made.select(65535) is None
    assert made.select(20) is two
    assert made.hash_of_key(b"key-0") == 63679


def test_neighbouring_sticky_ranges_are_shown_as_one() -> None:
    made, one = StickyRanges(), consumer("one", (100, 200), (0, 99), (300, 400))
    made.add(one)
    assert made.ranges() == {one: [(0, 200), (300, 400)]}


ranges = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=4)


@given(st.lists(st.tuples(ranges, st.booleans()), max_size=12))
def test_sticky_ranges_behave_as_a_plain_table(program: list[tuple[list[Range], bool]]) -> None:
    made, table = StickyRanges(), dict[int, Consumer]()
    for wanted, stays in program:
        newcomer = consumer("a", *wanted)
        hashes = [point for start, end in wanted for point in range(start, end + 1)]
        fits = bool(wanted) and all(start <= end for start, end in wanted) and len(hashes) == len(set(hashes))
        if fits and not table.keys() & set(hashes):
            made.add(newcomer)
            if stays:
                table |= dict.fromkeys(hashes, newcomer)
            else:
                made.remove(newcomer)
        else:
            with pytest.raises(OwnerMustAnswerError if fits else ConsumerAssignError):
                made.add(newcomer)
        assert [made.select(point) for point in range(45)] == [table.get(point) for point in range(45)]
