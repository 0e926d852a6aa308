"""Recognize clients at the wrong port by their first bytes, answer in their protocol, and log the reason."""

from __future__ import annotations

import ssl
from typing import Final, NamedTuple

from pulsarium.broker.config.listeners import Listener
from pulsarium.proto.first_bytes import FRAME, HTTP_REQUESTS, NO_TLS, TLS_ALERT, TLS_HANDSHAKE

_ALERT: Final = TLS_ALERT + b"\x01\x00\x02\x02\x46"  # protocol_version: the answer of a TLS server to another protocol
_DISTRUST: Final = ("UNKNOWN_CA", "CERTIFICATE_UNKNOWN", "BAD_CERTIFICATE")  # ends of alerts from clients


class WrongPort(NamedTuple):
    """A client at the wrong port: the reason for the log, and the bytes of the answer."""

    reason: str
    answer: bytes


def at_binary_port(first: bytes, urls: Listener, *, secure: bool) -> WrongPort | None:
    """Return the client that begins with these bytes, which are no frame, or None if unknown. `secure` is over TLS."""
    if first.startswith(HTTP_REQUESTS):
        at = (urls.https if secure else urls.http) or urls.http
        answer = _http_refusal(f"This is the port of Pulsar clients; HTTP is answered at {at}")
        return WrongPort(f"HTTP came to the port of Pulsar clients; HTTP is answered at {at}", answer)
    if first.startswith(TLS_HANDSHAKE):
        remedy = f"TLS is spoken at {urls.pulsar_ssl}" if urls.pulsar_ssl else "--tls-port opens a port with TLS"
        # Bytes that are not TLS make clients report an error; after a mere end they try again.
        return WrongPort(f"TLS came to {urls.pulsar}, which is without TLS; {remedy}", b"no TLS here")
    return None


def at_http_port(first: bytes, urls: Listener) -> str | None:
    """Return the log's reason for a client that begins with these bytes, which are not HTTP, or None if unknown."""
    if first.startswith(TLS_HANDSHAKE):
        remedy = f"TLS is spoken at {urls.https}" if urls.https else "--https-port opens a port with TLS"
        return f"TLS came to {urls.http}, which is without TLS; {remedy}"
    if first.startswith(FRAME):
        return f"a Pulsar client came to the port of HTTP; its service URL is {urls.pulsar}"
    return None


def in_handshake(error: BaseException) -> WrongPort:
    """Return the client that fails in a TLS handshake with this error. The answer may be empty."""
    reason = error.reason or "" if isinstance(error, ssl.SSLError) else ""
    if reason == "HTTP_REQUEST":
        answer = _http_refusal("This port speaks TLS; the URL begins with https://")
        return WrongPort("http:// came to a port with TLS; the URL begins with https://", answer)
    if reason in NO_TLS:
        said = "a client without TLS came to a port with TLS; its URL begins with pulsar+ssl:// or https://"
        return WrongPort(said, _ALERT)
    if reason == "UNEXPECTED_EOF_WHILE_READING":
        return WrongPort("the client left in the handshake; it may not trust the certificate", b"")
    if reason.endswith(_DISTRUST):
        return WrongPort(f"the client does not trust the certificate ({reason})", b"")
    return WrongPort(str(error) or type(error).__name__, b"")


def _http_refusal(text: str) -> bytes:
    body = f"{text}\n"
    head = f"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\n"
    return f"{head}Connection: close\r\n\r\n{body}".encode()
