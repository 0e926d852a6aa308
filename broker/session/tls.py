"""Connections over TLS: the handshake, then a session as any other."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import TYPE_CHECKING

import trio

from pulsarium.broker.accepting import shake_hands
from pulsarium.broker.auth.tls import certificate_of
from pulsarium.broker.session.transport import Serve, StreamTransport

if TYPE_CHECKING:
    import ssl

    from pulsarium.broker.broker import Broker

RECORD = 16 << 10  # bytes of the largest TLS record: no more is read at once


def over_tls(context: Callable[[], ssl.SSLContext]) -> Serve:
    """How connections are served that begin with a handshake; `context` is asked for each."""

    async def serve(broker: Broker, sock: socket.socket, address: str) -> None:
        raw = trio.SocketStream(trio.socket.from_stdlib_socket(sock))
        try:
            stream = await shake_hands(raw, context(), address, broker.cluster.door)
            if stream is not None:
                await StreamTransport(broker, stream, address, certificate_of(stream), RECORD).serve()
        finally:
            await trio.aclose_forcefully(raw)

    return serve
