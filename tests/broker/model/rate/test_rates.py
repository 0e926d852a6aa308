"""Token buckets: they give as many tokens as their rate allows, and never more."""

from __future__ import annotations

from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarium.broker.clock import Timeline
from pulsarium.broker.model.rate.rates import RESOLUTION, TokenBucket


class Hands:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 123_456.7

    def monotonic(self) -> float:
        return self.now


def bucket(hands: Hands, rate: int, period: float = 1.0, resolution: float = RESOLUTION) -> TokenBucket:
    return TokenBucket(cast(Timeline, hands), rate, period, resolution)


RATES = st.integers(1, 2_000_000)
PERIODS = st.sampled_from((1.0, 2.0, 30.0, 0.5))
RESOLUTIONS = st.sampled_from((RESOLUTION, 1.0))
STEPS = st.lists(st.tuples(st.floats(0, 5), st.integers(0, 5000)), max_size=60)


@pytest.mark.req("B-42")
@given(rate=RATES, period=PERIODS, resolution=RESOLUTIONS, steps=STEPS)
def test_never_more_than_the_rate_and_a_burst(
    rate: int, period: float, resolution: float, steps: list[tuple[float, int]]
) -> None:
    hands = Hands()
    tokens, began, taken = bucket(hands, rate, period, resolution), hands.now, 0
    for seconds, most in steps:
        hands.now += seconds
        passes = min(most, max(0, tokens.available()))
        tokens.take(passes)
        taken += passes
        assert taken <= rate + rate * (hands.now - began) / period + 1
        assert tokens.available() <= rate


@pytest.mark.req("B-42")
@given(rate=RATES, period=PERIODS, resolution=RESOLUTIONS, debt=st.integers(0, 10_000), steps=STEPS)
def test_tokens_always_come_back_when_they_were_said_to(
    rate: int, period: float, resolution: float, debt: int, steps: list[tuple[float, int]]
) -> None:
    hands = Hands()
    tokens = bucket(hands, rate, period, resolution)
    for seconds, count in steps:
        hands.now += seconds
        tokens.take(count)
    tokens.take(max(0, tokens.available()) + debt)
    waits = 0
    while seconds := tokens.seconds_until(1):
        hands.now += seconds
        waits += 1
    assert tokens.available() >= 1
    assert waits <= 3


@given(rate=RATES, period=PERIODS, resolution=RESOLUTIONS, pauses=st.lists(st.floats(0.001, 3), min_size=1))
def test_nothing_is_lost_between_two_looks(rate: int, period: float, resolution: float, pauses: list[float]) -> None:
    hands = Hands()
    tokens, began = bucket(hands, rate, period, resolution), hands.now
    taken = 10**12  # a debt, so that the bucket never overflows
    tokens.take(taken)
    for seconds in pauses:
        hands.now += seconds
        tokens.available()
    hands.now += max(resolution, period / rate) + 1e-3
    came = tokens.available() + taken - rate
    assert came == pytest.approx(rate * (hands.now - began) / period, rel=1e-6, abs=1.01)


def test_a_period_comes_at_once() -> None:
    hands = Hands()
    tokens = bucket(hands, 5, resolution=1.0)
    tokens.take(5)
    hands.now += 0.9
    assert tokens.available() == 0
    assert tokens.seconds_until(1) == pytest.approx(0.1)
    hands.now += 0.1
    assert tokens.available() == 5


def test_a_debt_is_paid_first() -> None:
    hands = Hands()
    tokens = bucket(hands, 10)
    tokens.take(30)
    assert tokens.seconds_until(1) == pytest.approx(2.1)
    hands.now += 2.05
    assert tokens.available() == 0


def test_a_request_may_exceed_the_size_of_a_token_bucket() -> None:
    hands = Hands()
    tokens = bucket(hands, 1)
    assert tokens.seconds_until(100) == 0


def test_a_rate_relative_to_less_than_nothing() -> None:
    """A client may claim a negative number of messages for its entries."""
    hands = Hands()
    less = TokenBucket(cast(Timeline, hands), 10, 1.0, 1.0, lambda: -1e9)
    hands.now += 5
    assert less.available() == 1
    assert less.seconds_until(1) == 0
