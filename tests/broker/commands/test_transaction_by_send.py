"""Entries whose transaction only their SEND names, as the Go client sends them."""

from __future__ import annotations

import pytest

from pulsarium.broker.config import PIP, PULSAR_4_2, Config, Profile
from pulsarium.proto.entry import parse_metadata
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.commands.coordinators import begin, ended, using
from tests.broker.wire import TOPIC, Earliest, Type, Wire, frame_of, plain, serving

ON = Config(transactionCoordinatorEnabled=True)


async def send_in(wire: Wire, txn: dict[str, int], payload: bytes) -> None:
    await wire.write(frame_of(Type.SEND, plain(payload), producer_id=0, sequence_id=0, **txn))
    await wire.expect(Type.SEND_RECEIPT)


@pytest.mark.req("B-29")
@pytest.mark.parametrize(("profile", "shown"), [(PIP, [b"kept"]), (PULSAR_4_2, [b"dropped", b"kept"])])
async def test_consumers_see_messages_after_an_abort_as_the_profile_says(
    profile: Profile, shown: list[bytes], autojump_clock: object
) -> None:
    async with serving(ON, profile=profile) as bed:
        wire = await using(bed)
        await wire.producer()
        for payload in (b"dropped", b"kept"):
            txn = await begin(wire)
            await wire.ask(Type.ADD_PARTITION_TO_TXN, **txn, partitions=[TOPIC])
            await send_in(wire, txn, payload)
            await ended(wire, txn, txn_action=pb.COMMIT if payload == b"kept" else pb.ABORT)
        await wire.subscribe(initialPosition=Earliest)
        await wire.flow()
        messages = await wire.messages(len(shown))
        assert [message.payload for message in messages] == shown
        assert parse_metadata(messages[0].entry).HasField("txnid_least_bits") == (profile is PIP)
        await wire.quiet()
