"""Helpers for the tests of interrupts."""

from __future__ import annotations

# A shell ignores SIGINT for a program in the background, and nohup ignores SIGHUP. Programs of these tests handle both.
HEEDED = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "signal.signal(signal.SIGHUP, signal.SIG_DFL)\n"
)
