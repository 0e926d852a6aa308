"""For each rule about clients a program that breaks it, over streams to a real broker; told to, it mends its ways."""

from __future__ import annotations

from . import acknowledging, consuming, entries, greeting, opening, requests, sending, transacting
from .program import PROGRAMS, Program

MODULES = (greeting, requests, opening, sending, entries, consuming, acknowledging, transacting)
"""Imported for their programs."""

__all__ = ["PROGRAMS", "Program"]
