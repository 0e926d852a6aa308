"""WATCH_TC_ASSIGNMENTS: the leaders of the coordinators over scalable topics."""

from __future__ import annotations

from typing import Any

import pytest

from pulsarium.broker.config import Config
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.wire import Bed, Type, Wire


async def watch(wire: Wire, watch_id: int = 1) -> Any:
    await wire.send(Type.WATCH_TC_ASSIGNMENTS, watch_id=watch_id)
    return await wire.expect(Type.WATCH_TC_ASSIGNMENTS_UPDATE)


async def test_a_watch_shows_the_leader_of_each_coordinator(bed: Bed, wire: Wire) -> None:
    told = await watch(wire, 3)
    listener = bed.broker.listener()
    assert listener is not None
    assert (told.watch_id, told.snapshot.parallelism) == (3, 16)
    assert [each.tc_id for each in told.snapshot.assignments] == list(range(16))
    assert {each.broker_service_url for each in told.snapshot.assignments} == {listener.pulsar}


@pytest.mark.serving(brokers=2)
async def test_a_watch_hears_of_brokers_that_stop_and_start(bed: Bed) -> None:
    wire, (first, second) = await bed.connect(), bed.broker.cluster.brokers
    second.port = first.port + 1

    def leaders(told: Any) -> set[str]:
        return {each.broker_service_url for each in told.snapshot.assignments}

    both = leaders(await watch(wire))
    assert len(both) == 2
    second.stop()
    assert len(leaders(await wire.expect(Type.WATCH_TC_ASSIGNMENTS_UPDATE))) == 1
    second.start()
    assert leaders(await wire.expect(Type.WATCH_TC_ASSIGNMENTS_UPDATE)) == both
    await wire.send(Type.WATCH_TC_ASSIGNMENTS_CLOSE, watch_id=1)
    await wire.alive()
    second.stop()
    await wire.alive()
    assert first.cluster.scalable_coordinators is not None
    assert not first.cluster.scalable_coordinators.watchers


async def test_a_connection_that_ends_ends_its_watches(bed: Bed, wire: Wire) -> None:
    coordinators = bed.broker.cluster.scalable_coordinators
    assert coordinators is not None
    await watch(wire)
    assert len(coordinators.watchers) == 1
    await watch(wire)
    assert len(coordinators.watchers) == 1
    bed.broker.close_sessions()
    assert not coordinators.watchers


@pytest.mark.serving(Config(transactionCoordinatorScalableTopicsEnabled=False))
async def test_a_broker_without_these_coordinators_refuses_the_watch(bed: Bed) -> None:
    told = await watch(await bed.connect())
    assert told.error == pb.NotAllowedError
    assert told.message == "Scalable-topics transaction coordinator is disabled on this broker"
