"""The lab over HTTP, below /lab: one module for each of its parts."""

from __future__ import annotations

from types import ModuleType

from pulsarium.broker.web.lab import capture, clients, clock, cluster, faults, live, waiting

MODULES: tuple[ModuleType, ...] = (capture, clients, clock, cluster, faults, live, waiting)
