"""ACK and REDELIVER_UNACKNOWLEDGED_MESSAGES with very many message ids, while the broker serves other connections."""

from __future__ import annotations

import math
from typing import Any

import pytest

from pulsarium.broker.commands import consumer as consumer_commands
from pulsarium.broker.config import Config
from pulsarium.broker.config.profile import PULSAR_5_0
from pulsarium.broker.model.cursor import pending_acks
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.net import slices
from pulsarium.broker.session.session import sessions_of
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.session.session import used_much
from tests.broker.wire import TOPIC, Bed, Individual, Shared, Type, Wire, frame_of, message_id, plain

COUNT = 300  # ids of one command, each of which takes a slice of the loop's time


@pytest.fixture(autouse=True)
def one_id_a_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "SLICE", 0)
    monkeypatch.setattr(slices, "HALF_LIFE", math.inf)
    monkeypatch.setattr(consumer_commands, "IDS_A_STEP", 1, raising=False)
    monkeypatch.setattr(pending_acks, "ACKS_A_STEP", 1)


@pytest.fixture
async def owed(bed: Bed, wire: Wire, sender: Wire) -> list[Position]:
    """Deliver messages to a Shared consumer that acknowledges none of them. Return their positions."""
    await wire.subscribe(type=Shared)
    await wire.flow(2 * COUNT)
    positions = await sender.publish(*[plain(b"x")] * COUNT)
    await wire.messages(COUNT)
    used_much(bed)
    return positions


def redelivered(bed: Bed) -> int:
    dispatcher = bed.subscription().dispatcher
    assert dispatcher is not None
    return len(dispatcher.redeliveries)


def ack_of(positions: list[Position], **fields: Any) -> bytes:
    ids = [message_id(position) for position in positions]
    return frame_of(Type.ACK, consumer_id=0, ack_type=Individual, message_id=ids, **fields)


async def test_a_bystander_is_answered_before_the_last_id_of_an_ack(bed: Bed, wire: Wire, owed: list[Position]) -> None:
    bystander = await bed.connect()
    await wire.write(ack_of(owed, request_id=77))
    await bystander.alive()
    assert bed.subscription().cursor.backlog() > 0
    await wire.reply(77)
    assert bed.subscription().cursor.backlog() == 0


@pytest.mark.serving(profile=PULSAR_5_0)
async def test_in_5_0_an_id_behind_the_end_makes_the_answer_to_many_an_error(wire: Wire, owed: list[Position]) -> None:
    behind = Position(owed[-1].ledger_id, owed[-1].entry_id + 1)
    await wire.write(ack_of([owed[0], behind, *owed[1:]], request_id=77))
    answer = await wire.reply(77)
    assert answer.ackResponse.error == pb.UnknownError
    assert answer.ackResponse.message.endswith("Invalid mark deleted position")


async def test_with_many_consumers_a_bystander_is_answered_before_the_last_of_few_ids(
    bed: Bed, wire: Wire, owed: list[Position], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumer_commands, "IDS_A_STEP", len(owed))
    monkeypatch.setattr(consumer_commands, "CONSUMERS_ASKED", 1)
    for consumer_id in range(1, 30):
        await wire.subscribe(type=Shared, consumer_id=consumer_id)
    bystander = await bed.connect()
    await wire.write(ack_of(owed, request_id=77))
    await bystander.alive()
    assert bed.subscription().cursor.backlog() > 0
    await wire.reply(77)
    assert bed.subscription().cursor.backlog() == 0


async def test_a_bystander_is_answered_before_the_last_id_of_a_redelivery(
    bed: Bed, wire: Wire, owed: list[Position]
) -> None:
    bystander = await bed.connect()
    await wire.redeliver(owed)
    await bystander.alive()
    assert redelivered(bed) < COUNT
    again = await wire.messages(COUNT)
    assert [message.position for message in again] == owed


async def test_a_bystander_is_answered_before_all_that_a_consumer_owes_comes_again(
    bed: Bed, wire: Wire, owed: list[Position]
) -> None:
    bystander = await bed.connect()
    await wire.redeliver()
    await bystander.alive()
    assert redelivered(bed) < COUNT
    again = await wire.messages(COUNT)
    assert [message.position for message in again] == owed


async def test_a_command_behind_an_ack_waits_for_the_last_id_of_the_ack(wire: Wire, owed: list[Position]) -> None:
    stats = frame_of(Type.CONSUMER_STATS, request_id=78, consumer_id=0)
    await wire.write(ack_of(owed, request_id=77) + stats)
    assert (await wire.expect(Type.CONSUMER_STATS_RESPONSE)).unackedMessages == 0


async def test_an_ack_with_many_ids_is_answered_once(wire: Wire, owed: list[Position]) -> None:
    await wire.write(ack_of(owed, request_id=77))
    assert [each.command.type for each in await wire.rest()] == [pb.BaseCommand.ACK_RESPONSE]


async def test_an_ack_is_handled_to_its_end_when_its_client_leaves(
    bed: Bed, wire: Wire, sender: Wire, owed: list[Position]
) -> None:
    await wire.write(ack_of(owed))
    await wire.aclose()
    await sender.quiet()
    assert bed.subscription().cursor.backlog() == 0


async def test_an_ack_ends_with_its_consumer(bed: Bed, wire: Wire, owed: list[Position]) -> None:
    bystander = await bed.connect()
    await wire.write(ack_of(owed, request_id=77))
    await bystander.alive()
    bed.subscription().disconnect_consumers()
    left = bed.subscription().cursor.backlog()
    assert [each.command.type for each in await wire.rest()] == [pb.BaseCommand.CLOSE_CONSUMER]
    assert bed.subscription().cursor.backlog() == left > 0


TXN: dict[str, Any] = {"txnid_most_bits": 0, "txnid_least_bits": 1}
IN_TRANSACTIONS = pytest.mark.serving(Config(transactionCoordinatorEnabled=True))


@IN_TRANSACTIONS
async def test_a_bystander_is_answered_before_the_last_id_of_an_ack_in_a_transaction(
    bed: Bed, wire: Wire, owed: list[Position]
) -> None:
    bystander, dispatcher = await bed.connect(), bed.subscription().dispatcher
    assert dispatcher is not None
    await wire.write(ack_of(owed, request_id=77, **TXN))
    await bystander.alive()
    assert dispatcher.unacked > 0
    await wire.reply(77)
    assert dispatcher.unacked == 0


@IN_TRANSACTIONS
@pytest.mark.parametrize("commit", [True, False])
async def test_a_bystander_is_answered_before_the_last_entry_of_a_transaction_has_ended(
    bed: Bed, wire: Wire, owed: list[Position], commit: bool
) -> None:
    bystander = await bed.connect()
    await wire.ask(Type.ACK, consumer_id=0, ack_type=Individual, message_id=[message_id(each) for each in owed], **TXN)
    end: dict[str, Any] = {
        "subscription": {"topic": TOPIC, "subscription": "sub"},
        "txn_action": pb.COMMIT if commit else pb.ABORT,
    }
    await wire.write(frame_of(Type.END_TXN_ON_SUBSCRIPTION, request_id=78, **TXN, **end))
    await bystander.alive()
    assert bed.subscription().pending_acks
    await wire.reply(78)
    assert not bed.subscription().pending_acks
    assert bed.subscription().cursor.backlog() == (0 if commit else COUNT)


@IN_TRANSACTIONS
async def test_an_ack_in_a_transaction_that_conflicts_is_refused_and_its_connection_goes_on(
    bed: Bed, wire: Wire, owed: list[Position]
) -> None:
    await wire.ask(Type.ACK, consumer_id=0, ack_type=Individual, message_id=[message_id(owed[-1])], **TXN)
    await wire.write(ack_of(owed, request_id=77, **(TXN | {"txnid_least_bits": 2})))
    assert (await wire.reply(77)).ackResponse.error == pb.TransactionConflict
    await wire.alive()


@IN_TRANSACTIONS
@pytest.mark.parametrize("leaves", [True, False])
async def test_an_ack_in_a_transaction_takes_nothing_when_its_consumer_goes(
    bed: Bed, wire: Wire, owed: list[Position], leaves: bool
) -> None:
    bystander = await bed.connect()
    await wire.write(ack_of(owed, request_id=77, **TXN))
    pending = bed.subscription().pending_acks
    while not pending:
        await bystander.alive()
    if leaves:
        next(each for each in sessions_of(bed.broker) if each.consumers).close("as for a broken frame")
    else:
        bed.subscription().disconnect_consumers()
    while pending:
        await bystander.alive()
    await bystander.subscribe(type=Shared)
    await bystander.flow()
    assert [each.position for each in await bystander.messages(COUNT)] == owed


async def test_an_id_that_is_named_twice_is_delivered_again_once(wire: Wire, owed: list[Position]) -> None:
    await wire.redeliver([*reversed(owed), *owed])
    again = await wire.messages(COUNT)
    await wire.quiet()
    assert [(message.position, message.redelivery_count) for message in again] == [(each, 1) for each in owed]


async def test_ids_that_no_entry_can_have_are_passed_over(wire: Wire, owed: list[Position]) -> None:
    await wire.redeliver([Position(owed[0].ledger_id, 2**64 - 1), Position(2**64 - 1, 0), owed[5]])
    assert [message.position for message in await wire.messages(1)] == [owed[5]]
    await wire.quiet()
