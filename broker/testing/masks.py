"""Masks, for tests that run in another thread than the broker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict, Unpack

from pulsarium.broker.lab.masks import Mask, Masks, WornMask
from pulsarium.broker.server import RunningCluster
from pulsarium.broker.testing.thread import LoopThread

Thread = LoopThread[RunningCluster]


class Wearers(TypedDict, total=False):
    """Which connections wear a mask: globs, and all of them have to fit."""

    client_version: str
    listener: str
    """The URL that the client came by."""
    role: str
    disconnect: bool
    """Close those that fit and are open, so that they come back behind the mask."""


class BrokerMask:
    """A mask that was added. Leaving its `with` block removes it."""

    def __init__(self, thread: Thread, worn: WornMask) -> None:
        self._thread = thread
        self._worn = worn

    def __repr__(self) -> str:
        return f"<mask {self.id}: {self.mask}, {self.hits} connections>"

    @property
    def id(self) -> int:
        """As REST and the command line name it."""
        return self._worn.id

    @property
    def mask(self) -> Mask:
        return self._worn.mask

    @property
    def hits(self) -> int:
        """How many connections it was given to."""
        return self._worn.hits

    def remove(self) -> None:
        """New connections do without it."""
        self._thread.call(self._worn.remove)

    def __enter__(self) -> BrokerMask:
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()


class BrokerMasks:
    """The masks of a broker: of those that fit, a new connection gets the one that was added last.

    broker.masks.add(Mask(max_protocol_version=12), client_version="Pulsar-CPP*")
    """

    def __init__(self, thread: Thread, masks: Masks) -> None:
        self._thread = thread
        self._masks = masks

    def add(self, mask: Mask, **whose: Unpack[Wearers]) -> BrokerMask:
        """Connections that are opened from now on wear it."""
        return BrokerMask(self._thread, self._thread.call(self._masks.add, mask, **whose))

    @property
    def worn(self) -> Sequence[BrokerMask]:
        """Those that there are."""
        return [BrokerMask(self._thread, worn) for worn in self._masks.worn]

    def clear(self) -> None:
        """Remove all of them."""
        self._thread.call(self._masks.clear)
