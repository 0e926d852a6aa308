"""Choice of the selector of a Key_Shared subscription."""

from __future__ import annotations

from pulsarium.broker.config import Config
from pulsarium.broker.model.dispatch.selector import AutoSplit, ConsistentHashRing, selector_for
from pulsarium.broker.model.subscription.consumer import KeySharedOptions


def test_a_broker_may_halve_ranges_where_others_have_a_ring() -> None:
    assert isinstance(selector_for(KeySharedOptions(), Config()), ConsistentHashRing)
    halving = Config(subscriptionKeySharedUseConsistentHashing=False)
    assert isinstance(selector_for(KeySharedOptions(), halving), AutoSplit)


def test_a_broker_says_how_many_points_a_consumer_has_on_the_ring() -> None:
    chosen = selector_for(KeySharedOptions(), Config(subscriptionKeySharedConsistentHashingReplicaPoints=7))
    assert isinstance(chosen, ConsistentHashRing)
    assert chosen._points == 7
