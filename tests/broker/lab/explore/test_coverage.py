"""Coverage of choices, which steers the next runs."""

from __future__ import annotations

import random

from pulsarium.broker.lab.explore.coverage import Coverage, Passed, Place
from pulsarium.broker.lab.explore.script import Decision

OFTEN, SELDOM = Place("unload", "SEND", "with consumers"), Place("unload", "SEND", "without subscription")


def test_a_wish_is_for_a_place_where_no_run_has_chosen() -> None:
    coverage = Coverage()
    coverage.add([Passed(OFTEN, 0, True), Passed(SELDOM, 1, False), Passed(OFTEN, 2, False)])
    assert {coverage.wish(random.Random(seed)) for seed in range(20)} == {Decision("unload", "SEND", 1)}


def test_there_is_no_wish_before_the_first_run() -> None:
    assert Coverage().wish(random.Random(1)) is None


def test_coverage_counts_places_and_choices_by_kind() -> None:
    coverage = Coverage()
    coverage.add([Passed(OFTEN, 0, True), Passed(SELDOM, 1, False)])
    coverage.add([Passed(OFTEN, 5, True)])
    assert (coverage.covered, coverage.places) == (1, 2)
    assert coverage.by_kind() == {"unload": (2, 1, 2)}
