"""Tests that run a few new inputs for each target, the same ones each time.

Coverage does not guide these inputs, but they are made from a corpus that coverage has guided.
"""

from __future__ import annotations

from random import Random

import pytest

from tests.fuzz.corpus import corpus_of
from tests.fuzz.targets import TARGETS

SEED = 20260731


@pytest.mark.heavy
@pytest.mark.parametrize("name", TARGETS)
def test_new_inputs_break_nothing(name: str) -> None:
    target, random = TARGETS[name], Random(SEED)
    corpus = [*corpus_of(target), *target.seeds()]
    for _ in range(target.fresh):
        data = random.choice(corpus)
        for _ in range(random.randint(1, 3)):
            data = target.mutate(data, corpus, random)
        target.run(data[: target.largest])
