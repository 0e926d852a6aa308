"""The lab over HTTP, below /lab: one module for each of its parts."""

from __future__ import annotations

from types import ModuleType

from pulsarium.broker.lab.rest import capture, clock, faults, lint, masks, process, state, why

MODULES: tuple[ModuleType, ...] = (
    capture,
    clock,
    faults,
    lint,
    masks,
    process,
    state,
    why,
)
