"""The lab over HTTP, below /lab: one module for each of its parts."""

from __future__ import annotations

from types import ModuleType

MODULES: tuple[ModuleType, ...] = ()
