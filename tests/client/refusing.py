"""Ports where nobody listens, or something else than a broker, for tests of clients that find none."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from pulsarium.broker.net.accepting import NO_LINGER


@contextmanager
def refusing_port() -> Iterator[int]:
    """Yield a port that refuses connections. It stays taken, so that no other process can listen there meanwhile."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


@contextmanager
def saying(answer: bytes | None) -> Iterator[int]:
    """Yield a port that gives this answer to the first client, whatever it sends, and closes. None resets at once."""

    def talk(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            if answer is None:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGER)
            else:
                connection.recv(65_536)
                connection.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=talk, args=(listener,), daemon=True)  # a test that fails may never connect
        thread.start()
        yield listener.getsockname()[1]
        thread.join()
