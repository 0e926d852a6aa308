"""Declares scenarios: a program for the client, and beside it, as data, everything it is to observe."""

from __future__ import annotations

import importlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from .world import World

Program: TypeAlias = Callable[["World"], Awaitable[object]]
"""Returns what it observed, in dicts and lists; `normal.py` makes it comparable."""

SECONDS = 60.0
"""Limits one scenario, also where many run at once, at a broker that has just started, on a slow machine."""


@dataclass(frozen=True)
class Scenario:
    """`expected`: what `program` observes, in the words of `normal.py`, under each loop and at each broker.

    `transactions`: whether its brokers have transactionCoordinatorEnabled.
    """

    name: str
    program: Program
    expected: object
    transactions: bool = False


SCENARIOS: dict[str, Scenario] = {}
"""All of them, once `load` was called."""


def scenario(*, expected: object, transactions: bool = False) -> Callable[[Program], Program]:
    """Makes a program one of the suite, named as the function is."""

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
