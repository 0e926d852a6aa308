"""Helpers for the tests of interrupts."""

from __future__ import annotations

# In a shell that put it into the background a program has SIGINT ignored: here it is not.
HEEDED = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
