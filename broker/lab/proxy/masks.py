"""The masks of a proxy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Unpack

from pulsarium.broker.cluster import Cluster
from pulsarium.broker.lab.arguments import ANY, Whose
from pulsarium.broker.lab.masks import Mask, MaskError, Masks, Wearer, WornMask
from pulsarium.broker.lab.proxy.masking import check_mask
from pulsarium.broker.lab.proxy.proxy import ProxiedConnections


class ProxyMasks(Masks):
    """The masks of a proxy. `forbidden` is the reason to refuse all, or ""."""

    def __init__(self, cluster: Cluster, connections: ProxiedConnections, forbidden: str) -> None:
        super().__init__(cluster)
        self._forbidden = forbidden
        self._connections = connections

    def add(self, mask: Mask, *, disconnect: bool = False, **whose: Unpack[Whose]) -> WornMask:
        """Add a mask. See `Masks.add`. Raise `MaskError` for a mask that the proxy cannot wear."""
        if self._forbidden:
            raise MaskError(self._forbidden)
        check_mask(mask)
        if whose.get("role", ANY) != ANY:
            raise MaskError("role: only the broker knows who a client is; select the client by clientVersion")
        return super().add(mask, disconnect=disconnect, **whose)

    def mask_of(self, client: Wearer) -> Mask | None:
        """Return the newest mask that is for a client, and count its connection."""
        for worn in reversed(self.worn):
            if worn.fits(client):
                worn.hits += 1
                return worn.mask
        return None

    def _connected(self) -> Iterator[tuple[Wearer, Callable[[], object]]]:
        for each in self._connections.all():
            if each.connected:
                yield each, partial(each.close, "a mask was added")
