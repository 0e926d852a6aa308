"""Which selector a Key_Shared subscription has."""

from __future__ import annotations

from pulsarium.broker.config.keys import Config
from pulsarium.broker.model.dispatch.selector.auto_split import AutoSplit
from pulsarium.broker.model.dispatch.selector.options import KeySharedOptions
from pulsarium.broker.model.dispatch.selector.ring import ConsistentHashRing
from pulsarium.broker.model.dispatch.selector.selector import Selector
from pulsarium.broker.model.dispatch.selector.sticky import StickyRanges
from pulsarium.proto.generated import PulsarApi_pb2 as pb

CLASSIC_SIZE = 2**31 - 2  # hashes of the ring before Pulsar 4.0


def selector_for(options: KeySharedOptions, config: Config, *, classic: bool = False) -> Selector:
    """What the first consumer asks for, and the broker is set to (B-07, B-10)."""
    if options.mode == pb.STICKY:
        return StickyRanges()
    if config.subscriptionKeySharedUseConsistentHashing:
        points = config.subscriptionKeySharedConsistentHashingReplicaPoints
        return ConsistentHashRing(points, CLASSIC_SIZE) if classic else ConsistentHashRing(points)
    return AutoSplit()
