"""Programs that break the linter's rules about clients, over streams to a real broker. Each rule has one, which can
also run mended."""

from __future__ import annotations

from . import acknowledging, consuming, entries, greeting, opening, requests, sending, transacting
from .program import PROGRAMS, Program

MODULES = (greeting, requests, opening, sending, entries, consuming, acknowledging, transacting)
"""Modules that register their programs when they are imported."""

__all__ = ["PROGRAMS", "Program"]
