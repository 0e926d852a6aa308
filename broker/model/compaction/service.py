"""Which engine compacts: an installed one (entry point group `pulsarium.compaction`), or the two phases."""

from __future__ import annotations

from functools import cache
from importlib.metadata import entry_points

from pulsarium.broker.model.compaction.compactor import Compactor, TwoPhaseCompactor

GROUP = "pulsarium.compaction"


@cache
def compactor() -> Compactor:
    """The engine of this process. An entry point names a class, or a function, that makes one without arguments."""
    for found in entry_points(group=GROUP):
        made: Compactor = found.load()()
        return made
    return TwoPhaseCompactor()
