"""Which engine compacts: the one that was asked for, another that is installed, or the two phases.

Engines are entry points of the group `pulsarium.compaction`: a class, or a function, that makes one; options come as
keyword arguments.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib.metadata import EntryPoint, entry_points

from pulsarium.broker.config.errors import ConfigError
from pulsarium.broker.model.compaction.compactor import Compactor, TwoPhaseCompactor

GROUP = "pulsarium.compaction"
TWO_PHASE = "two-phase"
_OURS = "pulsarium."


@cache
def compactor() -> Compactor:
    """The engine of this process where none was asked for: an installed one of somebody else's, or the two phases."""
    for found in entry_points(group=GROUP):
        if not found.value.startswith(_OURS):  # ours have to be asked for
            made: Compactor = found.load()()
            return made
    return TwoPhaseCompactor()


def make_engine(name: str, options: Iterable[tuple[str, str]] = ()) -> Compactor:
    """The engine of that name. ConfigError: it is not installed, it lacks something, or an option is not for it."""
    what = f"compaction engine {name}"
    engines: dict[str, EntryPoint] = {each.name: each for each in entry_points(group=GROUP)}
    if name == TWO_PHASE:
        maker = TwoPhaseCompactor
    elif name in engines:
        try:
            maker = engines[name].load()
        except ImportError as error:
            raise ConfigError("", what, str(error)) from error
    else:
        there = ", ".join(sorted({TWO_PHASE, *engines}))
        raise ConfigError("", what, f"no such engine is installed; there are: {there}")
    try:
        made: Compactor = maker(**{_argument(key): value for key, value in options})
    except (TypeError, ValueError, RuntimeError, OSError) as error:  # whatever an engine has against its options
        raise ConfigError("", what, str(error)) from error
    return made


def _argument(key: str) -> str:
    """work-dir is work_dir; a name with dots is somebody else's, such as Spark's own, and stays."""
    return key if "." in key else key.replace("-", "_")
