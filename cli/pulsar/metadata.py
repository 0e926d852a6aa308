"""A small metadata store in ZooKeeper's place, which the programs of one cluster form share, and the calls to it.

The store keeps the data of clusters that `bin/pulsar initialize-cluster-metadata` gives it, and knows the broker and
the bookies as long as they are connected. It speaks one line of JSON in each direction, behind a word of its own, and
answers ZooKeeper's `ruok` and `srvr`. No client of ZooKeeper can use it.
"""

from __future__ import annotations

import json
import re
import socket
import time
from pathlib import Path
from typing import Any, Final, NamedTuple

import trio

from pulsarium.cli.refusal import RunRefused

Json = dict[str, Any]

PORT: Final = 2181
WAIT_SECONDS: Final = 30.0  # for a store that starts at the same time
ANSWER_SECONDS: Final = 10.0
PAUSE_SECONDS: Final = 0.2
_URL: Final = re.compile(r"(?:metadata-store:)?(?:zk(?:\+hierarchical)?:(?://)?)?([^/,;:]+)(?::([0-9]+))?(?:[,;/].*)?")
_WORD: Final = b"pulsarium "
_FOUR_LETTERS: Final = {b"ruok": b"imok", b"srvr": b"Pulsarium in place of ZooKeeper\nMode: standalone\n"}
_MOST: Final = 1 << 16  # bytes of a request


class Place(NamedTuple):
    """The address of a metadata store."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


class ForeignStore(Exception):
    """The program at the address is no store of Pulsarium, such as a real ZooKeeper."""


def place_of(url: str) -> Place | None:
    """Return the first address of a URL such as zk:HOST:2181,HOST:2181/path, or None for a store of another kind."""
    found = _URL.fullmatch(url)
    return None if found is None else Place(found[1], int(found[2] or PORT))


class MetadataStore:
    """The data of clusters, in a file of `folder`, and the members that are connected."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "pulsarium-clusters.json"
        self._members: list[Json] = []
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._clusters: Json = json.loads(self._file.read_text("utf-8")) if self._file.exists() else {}
        except (OSError, ValueError) as error:
            raise RunRefused(f"cannot use {folder} for metadata: {error}; name another dataDir") from None

    async def talk(self, stream: trio.SocketStream) -> None:
        """Answer one request. A member stays connected."""
        request = b""
        while b"\n" not in request and request[:4] not in _FOUR_LETTERS and len(request) < _MOST:
            more = await stream.receive_some(_MOST)
            if not more:
                return
            request += more
        if request[:4] in _FOUR_LETTERS:
            await stream.send_all(_FOUR_LETTERS[request[:4]])
        elif request.startswith(_WORD):
            await self._answer(stream, json.loads(request.removeprefix(_WORD)))

    async def _answer(self, stream: trio.SocketStream, asked: Json) -> None:
        member = asked.get("join")
        self._put(asked.get("clusters", {}))
        other = None if member is None else self._other_broker(member)
        answer = {"clusters": self._clusters, "members": self._members, "other": other}
        await stream.send_all(json.dumps(answer).encode() + b"\n")
        if member is None or other is not None:
            return
        self._members.append(member)
        try:
            while await stream.receive_some(_MOST):
                pass
        finally:
            self._members.remove(member)

    def _other_broker(self, member: Json) -> str | None:
        """Return the id of the broker that is there, which must stay the only one."""
        others = [each["id"] for each in self._members if each["kind"] == "broker" == member["kind"]]
        return others[0] if others else None

    def _put(self, clusters: Json) -> None:
        if clusters:
            self._clusters |= clusters
            self._file.write_text(json.dumps(self._clusters, indent=2) + "\n", "utf-8")


class Membership:
    """The answer of a store, and the connection that keeps a member known."""

    def __init__(self, connection: socket.socket, answer: Json) -> None:
        self.clusters: Json = answer["clusters"]
        self.members: list[Json] = answer["members"]
        self.other: str | None = answer["other"]
        self._connection = connection

    def leave(self) -> None:
        self._connection.close()


def ask(place: Place, request: Json, wait: float | None = None) -> Membership:
    """Send a request to the store, and wait while it starts. The caller leaves the returned membership.

    Raise `OSError` when no program answers in time, and `ForeignStore` when it is no store of Pulsarium.
    """
    connection = _connect(place, time.monotonic() + (WAIT_SECONDS if wait is None else wait))
    try:
        return Membership(connection, _talk(connection, request))
    except BaseException:
        connection.close()
        raise


def _connect(place: Place, end: float) -> socket.socket:
    while True:
        try:
            return socket.create_connection(place, ANSWER_SECONDS)
        except OSError:
            if time.monotonic() >= end:
                raise
            time.sleep(PAUSE_SECONDS)


def _talk(connection: socket.socket, request: Json) -> Json:
    try:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        connection.sendall(_WORD + json.dumps(request).encode() + b"\n")
        with connection.makefile("rb") as lines:
            answer: Json = json.loads(lines.readline())
    except (OSError, ValueError) as error:
        raise ForeignStore from error
    return answer
