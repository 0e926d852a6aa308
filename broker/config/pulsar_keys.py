"""The names of all keys that a broker.conf or standalone.conf of Pulsar may have, and the releases that have them.

The names are in pulsar_keys.txt, which also says where they come from.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

RELEASES: Final = ("2.7", "2.8", "2.9", "2.10", "2.11", "3.0", "3.2", "4.0", "4.1", "4.2", "5.0-m1", "5.0")
FILE: Final = Path(__file__).with_name("pulsar_keys.txt")

# Pulsar passes keys with these prefixes on to a client or a plug-in.
_PREFIXES: Final = ("athenz", "bookkeeper_", "brokerClient_", "dbStorage_", "openID")


class Releases(NamedTuple):
    """The first and the last release that has a key."""

    first: str
    last: str

    def __str__(self) -> str:
        return self.first if self.first == self.last else f"{self.first} to {self.last}"

    def has(self, release: str) -> bool:
        """Return whether a release is among these."""
        return RELEASES.index(self.first) <= RELEASES.index(release) <= RELEASES.index(self.last)


def _read() -> Iterator[tuple[str, Releases]]:
    releases = Releases(RELEASES[0], RELEASES[-1])
    for line in FILE.read_text(encoding="ascii").splitlines():
        if line.startswith("["):
            first, _, last = line.strip("[]").partition(" to ")
            releases = Releases(first, last)
        elif not line.startswith("#"):
            for key in line.split():
                yield key, releases


PULSAR_KEYS: Final = dict(_read())


def releases_of(key: str) -> Releases | None:
    """Return the releases of Pulsar that have a key, or None when no release has the key."""
    if key.startswith(_PREFIXES):
        return Releases(RELEASES[0], RELEASES[-1])
    return PULSAR_KEYS.get(key)
