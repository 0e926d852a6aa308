"""Numbers of the wire. A signed 64-bit number of Pulsar travels as a uint64, so -1 arrives as 2^64 - 1."""

from __future__ import annotations

import re
from typing import Final

INT_MAX: Final = 2**31 - 1
LONG_MAX: Final = 2**63 - 1

NO_REQUEST: Final = 2**64 - 1
"""The request id of a command that answers no request, such as a CLOSE_PRODUCER of the broker."""

NO_SEQUENCE: Final = 2**64 - 1
"""The highest sequence id in the receipt of a message that carries none."""

NO_LEDGER: Final = 2**64 - 1
"""The ledger id in the receipt of a message that was dropped, such as a duplicate."""


_TEXT: Final = re.compile(r"[-+]?\d{1,4000}")


def parse_number(text: str, bits: int = 64) -> int | None:
    """Return the number of a text as Java's `Long.parseLong` reads it, or with 32 bits `Integer.parseInt`, or None."""
    number = int(text) if _TEXT.fullmatch(text) else 1 << bits
    return number if -(1 << bits - 1) <= number < 1 << bits - 1 else None


def signed(value: int) -> int:
    """Return a uint64 of the wire as Pulsar's signed number."""
    return value - 2**64 if value > LONG_MAX else value


def unsigned(value: int) -> int:
    """Return a signed number of Pulsar as the uint64 of the wire. Numbers that need more bits wrap, as in Java."""
    return value if 0 <= value < 2**64 else value % 2**64
