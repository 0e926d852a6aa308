"""Masks: what clients see of a broker that seems to be older or smaller."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from pulsarium.broker.config import PROFILES, PULSAR_4_2, Config
from pulsarium.broker.lab import Lab
from pulsarium.broker.lab.masks import ALWAYS, TAKEN, Mask, MaskError, Masks
from pulsarium.broker.session.session import sessions_of
from pulsarium.proto.commands import COMMANDS
from pulsarium.proto.entry import parse_broker_metadata
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.auth.secured import by_token, token
from tests.broker.commands.last_message_id import last, stage_of
from tests.broker.lab.attended import is_attended
from tests.broker.wire import TOPIC, Bed, Failover, Type, plain, serving
from yardsticks.bench.minimal import minimal_command


@pytest.fixture
async def bed(autojump_clock: object) -> AsyncIterator[Bed]:
    async with serving() as bed:
        yield bed


def masks_of(bed: Bed) -> Masks:
    lab = bed.broker.cluster.attached(Lab)
    return lab.masks


def flags_of(connected: pb.CommandConnected) -> set[str]:
    return {field.name for field, value in connected.feature_flags.ListFields() if value}


@pytest.mark.parametrize(
    ("cap", "client", "agreed"), [(0, 22, 0), (12, 22, 12), (12, 9, 9), (21, 22, 21), (22, 30, 22)]
)
async def test_a_version_is_capped(bed: Bed, cap: int, client: int, agreed: int) -> None:
    masks_of(bed).add(Mask(max_protocol_version=cap))
    assert (await bed.dial().connect(client)).protocol_version == agreed


async def test_a_mask_lowers_a_profile_and_never_raises_it(autojump_clock: object) -> None:
    async with serving(profile=PULSAR_4_2) as bed:
        masks_of(bed).add(Mask(max_protocol_version=22))
        assert (await bed.dial().connect(22)).protocol_version == 21


@pytest.mark.req("S429-08")
@pytest.mark.parametrize(("cap", "with_entry"), [(21, False), (22, True)])
async def test_no_last_entry_below_22(bed: Bed, cap: int, with_entry: bool) -> None:
    stage = await stage_of(bed)
    masks_of(bed).add(Mask(max_protocol_version=cap))
    found = await last(await stage.client(22))
    assert bool(found.buffer) is with_entry
    assert (found.batch_index is None) is with_entry


@pytest.mark.req("W-10")
@pytest.mark.parametrize(("cap", "told"), [(11, False), (12, True)])
async def test_nothing_is_sent_unasked_that_a_later_version_brought(bed: Bed, cap: int, told: bool) -> None:
    masks_of(bed).add(Mask(max_protocol_version=cap))
    wire = await bed.connect(22)
    await wire.subscribe(type=Failover)
    said = [received.command.type for received in await wire.rest(2)]
    assert (Type.ACTIVE_CONSUMER_CHANGE in said) is told


@pytest.mark.req("W-04")
@pytest.mark.parametrize(("cap", "disconnected"), [(4, True), (5, False)])
async def test_an_old_client_is_told_by_disconnecting_it(bed: Bed, cap: int, disconnected: bool) -> None:
    masks_of(bed).add(Mask(max_protocol_version=cap))
    wire = await bed.connect(22)
    await wire.producer()
    topic = next(iter(bed.broker.topics.loaded.values()))
    bed.broker.topics.unload(topic.name)
    said = [received.command.type for received in await wire.rest()]
    assert wire.ended is disconnected
    assert (Type.CLOSE_PRODUCER in said) is not disconnected


@pytest.mark.req("W-08")
async def test_flags_of_the_broker(bed: Bed) -> None:
    before = flags_of(await bed.dial().connect())
    masks_of(bed).add(Mask(flags={"supports_topic_watchers": False, "supports_partial_producer": True}))
    after = flags_of(await bed.dial().connect())
    assert before - after == {"supports_topic_watchers"}
    assert after - before == {"supports_partial_producer"}


@pytest.mark.parametrize("believed", [False, True])
async def test_flags_of_the_client(bed: Bed, believed: bool) -> None:
    masks_of(bed).add(Mask(client_flags={"supports_partial_producer": believed}))
    await bed.connect(flags=[] if believed else ["supports_partial_producer"])
    (session,) = sessions_of(bed.broker)
    assert session.supports_partial_producer is believed


@pytest.mark.req("S415-30")
@pytest.mark.parametrize(
    ("mask", "exposed"),
    [
        (Mask(), True),
        (Mask(max_protocol_version=18), True),
        (Mask(max_protocol_version=17), False),
        (Mask(client_flags={"supports_broker_entry_metadata": False}), False),
        (Mask(profile="pulsar-2.8"), False),
        (Mask(profile="pulsar-2.10"), True),
    ],
)
async def test_broker_entry_metadata(autojump_clock: object, mask: Mask, exposed: bool) -> None:
    stamping = ("org.apache.pulsar.common.intercept.AppendIndexMetadataInterceptor",)
    config = Config(exposingBrokerEntryMetadataToClientEnabled=True, brokerEntryMetadataInterceptors=stamping)
    async with serving(config) as bed:
        masks_of(bed).add(mask)
        wire = await bed.connect(22, ["supports_broker_entry_metadata"])
        await wire.producer()
        await wire.subscribe()
        await wire.flow()
        await wire.publish(plain(b"x"))
        assert (parse_broker_metadata((await wire.message()).entry) is not None) is exposed


@pytest.mark.req("W-06")
@pytest.mark.parametrize("name", sorted(TAKEN - ALWAYS))
async def test_a_command_that_is_not_allowed_closes_the_connection(bed: Bed, name: str) -> None:
    masks_of(bed).add(Mask(allowed=frozenset(TAKEN - {name})))
    wire = await bed.connect()
    spec = next(spec for spec in COMMANDS.values() if spec.name == name)
    body = getattr(minimal_command(spec.type), spec.field)
    await wire.send(spec.type, **{field.name: value for field, value in body.ListFields()})
    assert await wire.closed() == []


async def test_allowed_commands_work_behind_a_mask(bed: Bed) -> None:
    masks_of(bed).add(Mask(allowed=frozenset({"PRODUCER", "SEND"})))
    wire = await bed.connect()
    await wire.producer()
    await wire.publish(plain(b"x"))
    await wire.alive()
    await wire.write(wire.numbered(Type.LOOKUP, topic=TOPIC))
    await wire.closed()


async def test_an_error_instead(bed: Bed) -> None:
    masks_of(bed).add(Mask(allowed=frozenset({"PRODUCER"}), unknown_error="UnsupportedVersionError"))
    wire = await bed.connect()
    refused = await wire.refused(Type.CLOSE_PRODUCER, producer_id=9)
    assert refused == (pb.UnsupportedVersionError, "CLOSE_PRODUCER is not supported")
    response = (await wire.request(Type.LOOKUP, topic=TOPIC)).lookupTopicResponse  # a lookup's reply has an error field
    assert (response.response, response.error) == (response.Failed, pb.UnsupportedVersionError)
    await wire.producer()
    await wire.send(Type.SEND, plain(b"x"), producer_id=0, sequence_id=7)
    error = await wire.expect(Type.SEND_ERROR)
    assert (error.sequence_id, error.error) == (7, pb.UnsupportedVersionError)
    await wire.send(Type.FLOW, consumer_id=0, messagePermits=1)  # FLOW has no answer, so no error is sent
    ack: dict[str, Any] = {
        "consumer_id": 0,
        "ack_type": pb.CommandAck.Individual,
        "message_id": [{"ledgerId": 1, "entryId": 0}],
    }
    await wire.send(Type.ACK, **ack)  # an ACK without a request id has no answer either
    await wire.alive()
    assert (await wire.request(Type.ACK, **ack)).ackResponse.error == pb.UnsupportedVersionError


@pytest.mark.parametrize("name", ["pulsar-4.0", "pulsar-3.0", "pulsar-2.11", "pulsar-2.8"])
async def test_a_whole_profile(bed: Bed, name: str) -> None:
    masks_of(bed).add(Mask(profile=name))
    wire = bed.dial()
    connected = await wire.connect(22)
    profile = PROFILES[name]
    assert connected.protocol_version == profile.max_protocol_version
    assert connected.server_version == profile.server_version
    assert flags_of(connected) == profile.flags
    assert connected.HasField("feature_flags") is bool(profile.flags)
    watch = {"watcher_id": 1, "namespace": "public/default", "topics_pattern": ".*"}
    if "supports_topic_watchers" in profile.flags:
        await wire.ask(Type.WATCH_TOPIC_LIST, **watch)
    else:
        await wire.write(wire.numbered(Type.WATCH_TOPIC_LIST, **watch))
        await wire.closed()


@pytest.mark.parametrize(
    ("selector", "fits"),
    [
        ({"client_version": "wire"}, True),
        ({"client_version": "w*"}, True),
        ({"client_version": "Pulsar*"}, False),
        ({"listener": "pulsar://localhost:6650"}, True),
        ({"listener": "pulsar+ssl:*"}, False),
        ({"role": ""}, True),
        ({"role": "admin"}, False),
        ({"client_version": "w*", "role": "admin"}, False),
    ],
)
async def test_for_whom_it_is(bed: Bed, selector: dict[str, Any], fits: bool) -> None:
    worn = masks_of(bed).add(Mask(max_protocol_version=5), **selector)
    agreed = (await bed.dial().connect(21)).protocol_version
    assert (agreed, worn.hits) == ((5, 1) if fits else (21, 0))


async def test_for_a_role(autojump_clock: object) -> None:
    async with serving(by_token()) as bed:
        masks_of(bed).add(Mask(max_protocol_version=5), role="al*")
        agreed = {}
        for role in ("alice", "bob"):
            wire = bed.dial()
            connected = await wire.connect(21, auth_method_name="token", auth_data=token(role).encode())
            agreed[role] = connected.protocol_version
        assert agreed == {"alice": 5, "bob": 21}


async def test_the_last_mask_that_fits_counts(bed: Bed) -> None:
    masks = masks_of(bed)
    masks.add(Mask(max_protocol_version=5))
    with masks.add(Mask(max_protocol_version=9), client_version="wire") as last:
        masks.add(Mask(max_protocol_version=13), client_version="other")
        assert (await bed.dial().connect()).protocol_version == 9
        assert last.hits == 1
    assert (await bed.dial().connect()).protocol_version == 5
    masks.clear()
    assert (await bed.dial().connect()).protocol_version == 21


async def test_open_connections_keep_their_mask(bed: Bed) -> None:
    masks = masks_of(bed)
    wire, other = await bed.connect(), await bed.connect(client_version="other")
    masks.add(Mask(allowed=frozenset()))
    await wire.producer()
    masks.add(Mask(allowed=frozenset()), client_version="wire", disconnect=True)
    await wire.closed()
    await other.alive()


async def test_a_mask_has_no_cost_after_connect(bed: Bed) -> None:
    cluster = bed.broker.cluster
    worn = masks_of(bed).add(Mask(max_protocol_version=5))
    await bed.connect()
    (session,) = sessions_of(bed.broker)
    assert session.outgoing.tap is None
    assert is_attended(cluster)
    worn.remove()
    assert not is_attended(cluster)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"profile": "pulsar-1.0"}, "no profile 'pulsar-1.0'; there are pip, pulsar-5.0, pulsar-5.0-m1, pulsar-4.2"),
        ({"max_protocol_version": 23}, "max_protocol_version is 23; it must be 0 to 22"),
        ({"flags": {"supports_all": True}}, "no feature flag 'supports_all'; there are supports_auth_refresh"),
        ({"client_flags": {"x": True}}, "no feature flag 'x'"),
        ({"allowed": frozenset({"MESSAGE"})}, "no command 'MESSAGE' of a client; there are ACK"),
        ({"unknown_error": "Oops"}, "no error 'Oops'; there are UnknownError"),
    ],
)
def test_masks_that_make_no_sense(given: dict[str, Any], text: str) -> None:
    with pytest.raises(MaskError, match=text):
        Mask(**given)
