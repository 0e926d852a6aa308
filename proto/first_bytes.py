"""Tell protocols apart at the wrong port: by their first bytes, and by OpenSSL's reason for a failed handshake.

Clients and brokers meet the same strangers, and each side has words of its own for them.
"""

from __future__ import annotations

from typing import Final

FRAME: Final = b"\x00\x00"
"""The beginning of each connection of Pulsar's protocol: the size of a frame as short as CONNECT or CONNECTED."""

TLS_ALERT: Final = b"\x15\x03"
TLS_HANDSHAKE: Final = b"\x16\x03"
HTTP_ANSWER: Final = b"HTTP"
HTTP_REQUESTS: Final = (b"GET ", b"HEAD ", b"POST ", b"PUT ", b"DELETE ", b"OPTIONS ", b"PATCH ", b"CONNECT ")

NO_TLS: Final = ("WRONG_VERSION_NUMBER", "PACKET_LENGTH_TOO_LONG", "RECORD_LAYER_FAILURE")
"""OpenSSL's reasons, and ends of them, when the other side's bytes are not TLS. HTTP has one of its own in servers."""

OTHER_NAME: Final = (62, 64)
"""OpenSSL's codes for a certificate of another host name, and of another address."""


def is_frame(first: bytes) -> bool:
    """Return whether these first bytes, however few, may begin a connection of Pulsar's protocol."""
    return first[: len(FRAME)] == FRAME[: len(first)]
