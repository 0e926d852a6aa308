"""Tests that run every input of the corpus, each of which reached lines of its own or found a fault."""

from __future__ import annotations

import pytest

from tests.fuzz.corpus import FOLDER, corpus_of, inputs_of
from tests.fuzz.targets import TARGETS

MOST_INPUTS = 500
MOST_BYTES = 1 << 20


@pytest.mark.parametrize("name", TARGETS)
def test_nothing_in_the_corpus_breaks_anything(name: str) -> None:
    target = TARGETS[name]
    inputs = corpus_of(target)
    assert inputs
    for data in inputs:
        target.run(data)


def test_the_corpus_stays_small() -> None:
    assert sum(len(inputs_of(target)) for target in TARGETS.values()) <= MOST_INPUTS
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) <= MOST_BYTES
