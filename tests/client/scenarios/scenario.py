"""Declare scenarios: a program for the client, and beside it, as data, the expected observation."""

from __future__ import annotations

import importlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from .world import World

Program: TypeAlias = Callable[["World"], Awaitable[object]]
"""A coroutine function that returns its observation in dicts and lists, which `normal.py` makes comparable."""

SECONDS = 60.0
"""Limit of one scenario in seconds, also on a slow machine with many at once and a new broker."""


@dataclass(frozen=True)
class Scenario:
    """A scenario.

    `expected` is what `program` observes, as `normal.py` writes it, under each loop and at each broker. `transactions`
    says whether its brokers have transactionCoordinatorEnabled.
    """

    name: str
    program: Program
    expected: object
    transactions: bool = False


SCENARIOS: dict[str, Scenario] = {}
"""All scenarios, after a call of `load`."""


def scenario(*, expected: object, transactions: bool = False) -> Callable[[Program], Program]:
    """Return a decorator that adds a program to the suite, with the name of the function."""

    def register(program: Program) -> Program:
        module, name = program.__module__, str(getattr(program, "__name__"))  # noqa: B009  (a Callable need not have one)
        full = f"{module.rpartition('.')[2]}-{name}"
        assert full not in SCENARIOS, full
        SCENARIOS[full] = Scenario(full, program, expected, transactions)
        return program

    return register


def load() -> dict[str, Scenario]:
    """Import every module of this folder, so that none is forgotten."""
    for file in sorted(Path(__file__).parent.glob("*.py")):
        if not file.stem.startswith(("test_", "conftest")):
            importlib.import_module(f"{__name__.rpartition('.')[0]}.{file.stem}")
    return SCENARIOS
