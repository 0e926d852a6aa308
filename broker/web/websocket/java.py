"""Base64 and times in frames, as Java reads and writes them."""

from __future__ import annotations

import base64
import re
from datetime import UTC, datetime
from typing import Final

from pulsarium.broker.clock import instant_text

ALPHABET: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
TOO_SHORT: Final = "Input byte[] should at least have 2 bytes for base64 bytes"
ZEROS: Final = re.compile(r"\.?0+Z$")
TIME: Final = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?)(Z|[+-]\d\d(?::?\d\d)?)")
READABLE: Final = re.compile(r"(?:\d{4}(?:-\d\d(?:-\d\d(?:T\d\d(?::\d\d)?)?)?)?)?")
NULL_TEXT: Final = 'Cannot invoke "String.getBytes(java.nio.charset.Charset)" because "src" is null'


def decode_base64(text: str) -> bytes:
    """Decode base64, with or without its padding, as java.util.Base64 does. Raise ValueError with Java's words."""
    data = text.encode("latin-1", "replace")
    stop = data.find(b"=")
    digits = data if stop < 0 else data[:stop]
    rest = len(digits) % 4
    if len(data) == 1:
        raise ValueError(TOO_SHORT)
    wrong = digits.translate(None, ALPHABET)
    if wrong:
        raise ValueError(f"Illegal base64 character {wrong[0]:x}")
    if rest == 1 or (stop >= 0 and rest == 2 and data[stop : stop + 2] != b"=="):
        raise ValueError("Input byte array has wrong 4-byte ending unit")
    if stop >= 0:
        end = stop + (2 if rest == 2 else 1)
        if rest == 0:
            raise ValueError("Input byte array has wrong 4-byte ending unit")
        if len(data) > end:
            raise ValueError(f"Input byte array has incorrect ending byte at {end}")
    return base64.b64decode(digits + b"=" * (-len(digits) % 4))


def time_text(ms: int) -> str:
    """Return milliseconds since the epoch as Java's ISO_OFFSET_DATE_TIME writes them: without zeros at the end."""
    text = instant_text(ms)
    return ZEROS.sub("Z", text) if text.endswith("0Z") else text


def time_of(text: str) -> int:
    """Return milliseconds since the epoch of an ISO time with an offset. Raise ValueError with Java's words."""
    match = TIME.fullmatch(text)
    try:
        if match is None:
            raise ValueError
        time = datetime.fromisoformat(match[1][:26] + match[2])
    except ValueError:
        readable = READABLE.match(text)
        stop = 0 if readable is None else readable.end()
        raise ValueError(f"Text '{text}' could not be parsed at index {stop}") from None
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    passed = time - epoch
    return (passed.days * 86_400 + passed.seconds) * 1000 + passed.microseconds // 1000
