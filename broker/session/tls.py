"""Connections over TLS: the handshake, then a session as any other."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import TYPE_CHECKING

import trio

from pulsarium.broker.auth.tls import HANDSHAKE_SECONDS, certificate_of
from pulsarium.broker.logs import Log
from pulsarium.broker.session.transport import Serve, StreamTransport

if TYPE_CHECKING:
    import ssl

    from pulsarium.broker.broker import Broker

log = Log("tls")

RECORD = 16 << 10  # bytes of the largest TLS record: no more is read at once


def over_tls(context: Callable[[], ssl.SSLContext]) -> Serve:
    """How connections are served that begin with a handshake; `context` is asked for each."""

    async def serve(broker: Broker, sock: socket.socket, address: str) -> None:
        raw = trio.SocketStream(trio.socket.from_stdlib_socket(sock))
        try:
            stream = trio.SSLStream(raw, context(), server_side=True, https_compatible=True)
            if await shake_hands(stream, address):
                await StreamTransport(broker, stream, address, certificate_of(stream), RECORD).serve()
        except Exception as error:  # whatever happens to a connection happens to no other
            log.error("a TLS connection failed", exception=error, peer=address)
        finally:
            await trio.aclose_forcefully(raw)

    return serve


async def shake_hands(stream: trio.SSLStream[trio.SocketStream], address: str) -> bool:
    """Whether the handshake succeeds in time; what is wrong with it concerns this connection alone."""
    reason: object = f"no handshake within {HANDSHAKE_SECONDS:g} seconds"
    with trio.move_on_after(HANDSHAKE_SECONDS):
        try:
            await stream.do_handshake()
        except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
            reason = error.__cause__ or error
        else:
            return True
    log.warning("a TLS handshake failed", peer=address, reason=reason)
    return False
