"""A proxy that records what passes between clients and a broker."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from pulsarium.proto.capture import CaptureWriter, Header
from pulsarium.proto.commands import Direction
from pulsarium.proto.framing import FrameDecoder, frame
from tests.foreign.broker_process import Address


class Recorder:
    """Listens on a free port of loopback; `close` waits until all its connections have ended."""

    def __init__(self, broker: Address, path: Path, *, keep_entry: int | None = None) -> None:
        self._broker = broker
        self._file = path.open("wb", buffering=0)
        header = Header(time.time_ns(), "Pulsarium", metadata={"made_by": "tests"})
        self._writer = CaptureWriter(self._file.write, header, keep_entry=keep_entry)
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._sockets: list[socket.socket] = []
        self._threads[0].start()

    @property
    def address(self) -> Address:
        return Address(f"pulsar://127.0.0.1:{self._listener.getsockname()[1]}", self._broker.admin_url)

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._threads[0].join(10)
        for each in self._sockets:  # a client that is still there is cut off
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(10)
        for each in self._sockets:
            each.close()
        self._file.close()

    def _accept(self) -> None:
        number = 0
        while True:
            try:
                client, peer = self._listener.accept()
            except OSError:
                return
            broker = socket.create_connection(("127.0.0.1", self._broker.port))
            for each in (client, broker):
                each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._sockets += [client, broker]
            with self._lock:
                self._writer.opened(number, time.monotonic_ns(), time.time_ns(), peer=f"{peer[0]}:{peer[1]}")
            connection = Connection(number, self._writer, self._lock)
            for source, target, sender in ((client, broker, Direction.CLIENT), (broker, client, Direction.BROKER)):
                thread = threading.Thread(target=connection.pump, args=(source, target, sender), daemon=True)
                self._threads.append(thread)
                thread.start()
            number += 1


class Connection:
    """Both ways of one connection."""

    def __init__(self, number: int, writer: CaptureWriter, lock: threading.Lock) -> None:
        self._number = number
        self._writer = writer
        self._lock = lock
        self._closed = False

    def pump(self, source: socket.socket, target: socket.socket, sender: Direction) -> None:
        """Recorded before it is passed on, so that no answer stands before its request."""
        decoder = FrameDecoder()
        reason = ""
        try:
            while data := source.recv(1 << 16):
                with self._lock:
                    for command, trailing in decoder.feed(data):
                        now = time.monotonic_ns(), time.time_ns()
                        self._writer.frame(self._number, sender, *now, frame(command, trailing))
                target.sendall(data)
        except OSError as error:
            reason = str(error)
        with self._lock:
            if not self._closed:
                self._closed = True
                self._writer.closed(self._number, sender, time.monotonic_ns(), time.time_ns(), reason)
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_WR)


@contextlib.contextmanager
def recording(broker: Address, path: Path, *, keep_entry: int | None = None) -> Iterator[Address]:
    """The address of a proxy whose capture is at `path` once the block has ended."""
    recorder = Recorder(broker, path, keep_entry=keep_entry)
    try:
        yield recorder.address
    finally:
        recorder.close()
