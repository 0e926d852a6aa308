"""`bin/bookkeeper shell`: the commands that compose files and health checks use."""

from __future__ import annotations

import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from pulsarium.cli.pulsar import metadata
from pulsarium.cli.pulsar.metadata import ForeignStore, Place
from pulsarium.cli.pulsar.services import number_in, settings_of, store_in
from pulsarium.cli.refusal import CommandRefusal, RequestRefused, RunRefused
from pulsarium.cli.terminal import guard

_NOTHING_TO_DO: Final = ("metaformat", "initnewcluster", "bookieformat")
_USAGE: Final = f"bin/bookkeeper shell listbookies, bookiesanity, {', '.join(_NOTHING_TO_DO)}; bin/bookkeeper bookie"


def main(home: Path, arguments: Sequence[str]) -> None:
    """Run bin/bookkeeper of the folder `home`, and print a refusal in one line."""
    guard()
    try:
        _run(home, [each for each in arguments if not each.startswith("-")])
    except CommandRefusal as refusal:
        refusal.show()
        sys.exit(refusal.exit_code)


def _run(home: Path, words: Sequence[str]) -> None:
    if words[:1] in (["bookie"], ["autorecovery"]):
        from pulsarium.cli.pulsar.main import main as pulsar

        pulsar(home, [words[0]])
    given = {"file": None, "config": None}
    if words[:2] == ["shell", "listbookies"]:
        _list(store_in(settings_of(home, given, "bookkeeper.conf", "PULSAR_BOOKKEEPER_CONF")))
    elif words[:2] == ["shell", "bookiesanity"]:
        _check(number_in(settings_of(home, given, "bookkeeper.conf", "PULSAR_BOOKKEEPER_CONF"), "bookiePort", 3181))
    elif len(words) > 1 and words[0] == "shell" and words[1] in _NOTHING_TO_DO:
        print(f"{words[1]}: there is nothing to format, because the broker keeps its messages itself")
    else:
        raise RequestRefused(f"bin/bookkeeper {' '.join(words)} does not exist; use {_USAGE}")


def _list(place: Place | None) -> None:
    if place is None:
        raise RequestRefused("conf/bookkeeper.conf: set zkServers to the store of `bin/pulsar zookeeper`")
    try:
        known = metadata.ask(place, {}, wait=0)
    except (ForeignStore, OSError):
        raise RunRefused(f"no metadata store of Pulsarium answers at {place}; start `bin/pulsar zookeeper`") from None
    known.leave()
    bookies = [member["id"] for member in known.members if member["kind"] == "bookie"]
    if not bookies:
        raise RunRefused("No bookie exists!")
    print("ReadWrite Bookies :")
    for each in bookies:
        host, _, port = each.rpartition(":")
        print(f"BookieID:{each}, IP:{_address(host)}, Port:{port}, Hostname:{host}")


def _address(host: str) -> str:
    try:
        return socket.gethostbyname(host)
    except OSError:
        return "UNKNOWN"


def _check(port: int) -> None:
    try:
        socket.create_connection(("127.0.0.1", port), metadata.ANSWER_SECONDS).close()
    except OSError as error:
        raise RunRefused(f"no bookie answers at port {port}: {error.strerror}; start `bin/pulsar bookie`") from None
    print("Bookie sanity test succeeded")
