"""Open connections to other servers."""

from __future__ import annotations

import errno
import socket
import ssl

import trio

from pulsarium.broker.net.accepting import PlainStream
from pulsarium.proto.first_bytes import NO_TLS, OTHER_NAME

FULL = (errno.EMFILE, errno.ENFILE)
"""Errors of a process, and of a machine, that have no file descriptor left."""

FAILURES = (OSError, UnicodeError, trio.TooSlowError, trio.BrokenResourceError)
"""Errors of `dial` within a time limit."""

_RENAME = "connect to a name of its certificate, or trust any with --tls-allow-insecure"
_AUTHORITY = "name the authority of its certificate with --tls-trust-cert-path FILE, or in SSL_CERT_FILE"

Dialled = PlainStream | trio.SSLStream[PlainStream]


async def dial(host: str, port: int, tls: ssl.SSLContext | None = None) -> Dialled:
    """Open a connection, with TLS when there is a context. Raise `OSError`, or `BrokenResourceError` without TLS."""
    opened = await trio.open_tcp_stream(host, port)
    sock = socket.socket(fileno=opened.socket.detach())
    sock.setblocking(False)
    raw = PlainStream(sock)
    if tls is None:
        return raw
    stream = trio.SSLStream(raw, tls, server_hostname=host, https_compatible=True)
    try:
        await stream.do_handshake()
    except BaseException:
        await trio.aclose_forcefully(raw)
        raise
    return stream


def plain(stream: Dialled) -> PlainStream:
    """Return a connection without its TLS."""
    return stream.transport_stream if isinstance(stream, trio.SSLStream) else stream


def is_reset(error: BaseException) -> bool:
    """Return whether the other side has reset a connection."""
    return isinstance(_cause(error), ConnectionResetError)


def why(error: BaseException) -> str:
    """Return why a connection could not be opened, in a few words."""
    if isinstance(error, trio.TooSlowError):
        return "no answer"
    cause = _cause(error)
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"{cause.verify_message.rstrip('.')}; {_RENAME if cause.verify_code in OTHER_NAME else _AUTHORITY}"
    if isinstance(cause, ssl.SSLError) and (cause.reason or "").endswith(NO_TLS):
        return f"it does not speak TLS ({cause.reason}); its port without TLS is named as pulsar:// or http://"
    if isinstance(cause, ssl.SSLError) and cause.reason == "UNEXPECTED_EOF_WHILE_READING":
        return "it ended the handshake of TLS; if its port is without TLS, name it as pulsar:// or http://"
    if isinstance(cause, ConnectionRefusedError):
        return "connection refused; compare the URL, and look whether the broker runs"
    return getattr(cause, "strerror", None) or str(cause) or type(cause).__name__


def is_full(error: BaseException) -> bool:
    """Return whether a connection could not be opened because no file descriptor is left."""
    return getattr(_cause(error), "errno", None) in FULL


def _cause(error: BaseException) -> BaseException:
    """Return the first cause of an error: trio names a group, with an error for each address."""
    while isinstance(error, BaseExceptionGroup) or error.__cause__ is not None:
        error = error.exceptions[0] if isinstance(error, BaseExceptionGroup) else error.__cause__ or error
    return error
