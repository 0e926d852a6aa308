"""Kinds of choices, as clients see them. Each kind is legal: the broker still keeps its promises."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest
import trio.testing

from pulsarium.broker.config import Config
from pulsarium.broker.lab import Lab
from pulsarium.broker.lab.explore.explorer import PlannedRun
from pulsarium.broker.lab.explore.kinds import KINDS, START
from pulsarium.broker.lab.explore.plan import Scripted
from pulsarium.broker.lab.explore.report import listed
from pulsarium.broker.lab.explore.script import read
from pulsarium.broker.lab.tap import SessionTap
from pulsarium.broker.session.session import sessions_of
from pulsarium.proto import entry as entries
from pulsarium.proto.commands import COMMANDS, Direction
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.commands.coordinators import begin, using
from tests.broker.wire import TOPIC, Bed, Earliest, Individual, Type, Wire, message_id, plain

Start = Callable[..., Awaitable[PlannedRun]]
SHARED, FAILOVER, KEY_SHARED = (
    pb.CommandSubscribe.SubType.Value(name) for name in ("Shared", "Failover", "Key_Shared")
)
A, B, C = plain(b"a"), plain(b"b"), plain(b"c")


async def stored(bed: Bed) -> list[bytes]:
    """Return the payloads of the topic, in order, once the broker has finished its work."""
    await trio.testing.wait_all_tasks_blocked()
    wire = await bed.connect()
    await wire.subscribe(name="reader", initialPosition=Earliest)
    await wire.flow()
    return [entries.payload_of(each.trailing) for each in await wire.rest() if each.command.type == Type.MESSAGE]


async def consumer(bed: Bed, **options: Any) -> Wire:
    """Return a connection with a consumer that has sent FLOW, once the broker has finished its work."""
    await trio.testing.wait_all_tasks_blocked()
    wire = await bed.connect()
    await wire.subscribe(**{"initialPosition": Earliest, **options})
    await wire.flow()
    return wire


async def test_a_connection_closes_before_the_work(bed: Bed, sender: Wire, explored: Start) -> None:
    await explored("close-before SEND 1")
    await sender.publish(A)
    await sender.write(sender.sends(B))
    await sender.closed()
    assert await stored(bed) == [b"a"]


async def test_a_connection_closes_after_the_work(bed: Bed, wire: Wire, explored: Start) -> None:
    await explored("close-after SUBSCRIBE 0")
    await wire.write(wire.numbered(Type.SUBSCRIBE, topic=TOPIC, subscription="sub", subType=0, consumer_id=0))
    await wire.closed()
    assert list(bed.topic().subscriptions) == ["sub"]


async def test_a_message_whose_receipt_is_lost_is_stored(bed: Bed, sender: Wire, explored: Start) -> None:
    await explored("receipt-lost SEND 0")
    await sender.write(sender.sends(A))
    assert [each.command.type for each in await sender.closed()] == []
    assert await stored(bed) == [b"a"]


async def test_a_duplicate_is_stored_and_answered_once(bed: Bed, sender: Wire, explored: Start) -> None:
    await explored("duplicate SEND 0")
    assert len(await sender.publish(A)) == 1
    await sender.quiet()
    assert await stored(bed) == [b"a", b"a"]


async def test_a_message_for_a_closed_producer_is_not_doubled(bed: Bed, sender: Wire, explored: Start) -> None:
    run = await explored("unload SEND 0", "duplicate SEND 1")
    await sender.publish(A)
    await sender.expect(Type.CLOSE_PRODUCER)
    await sender.write(sender.sends(B))
    await sender.producer()
    sender.sequences[0] = 1
    assert len(await sender.publish(B)) == 1
    assert [each.kind for each in run.made] == ["unload", "duplicate"]


@pytest.mark.serving(Config(brokerDeduplicationEnabled=True))
async def test_deduplication_stores_no_duplicate(bed: Bed, wire: Wire, explored: Start) -> None:
    await explored("duplicate SEND 0")
    await wire.producer(producer_name="me")
    named = plain(b"a", producer_name="me")
    await wire.write(wire.sends(named))
    await wire.expect(Type.SEND_RECEIPT)
    await wire.quiet()
    assert await stored(bed) == [b"a"]


async def test_a_message_whose_acknowledgement_is_lost_comes_again(bed: Bed, sender: Wire, explored: Start) -> None:
    await explored("ack-lost ACK 0")
    first = await consumer(bed)
    (position,) = await sender.publish(A)
    await first.message()
    await first.send(Type.ACK, consumer_id=0, message_id=[message_id(position)], ack_type=Individual)
    await first.closed()
    second = await consumer(bed)
    assert await second.payloads(1) == [b"a"]
    await second.ack(position)
    await second.quiet()


async def test_a_lost_delivery_comes_again(bed: Bed, sender: Wire, explored: Start) -> None:
    await explored("delivery-lost MESSAGE 0")
    await sender.publish(A)
    first = await bed.connect()
    await first.subscribe(initialPosition=Earliest)
    await first.flow()
    assert Type.MESSAGE not in [each.command.type for each in await first.closed()]
    assert await (await consumer(bed)).payloads(1) == [b"a"]


async def test_a_closed_consumer_gets_its_messages_again(bed: Bed, sender: Wire, explored: Start) -> None:
    await explored("redelivery MESSAGE 0")
    await sender.publish(A)
    wire = await consumer(bed)
    await wire.message()
    await wire.expect(Type.CLOSE_CONSUMER)
    await wire.subscribe(consumer_id=1)
    await wire.flow(consumer_id=1)
    assert await wire.payloads(1) == [b"a"]


async def test_another_consumer_takes_a_failover_subscription_over(bed: Bed, sender: Wire, explored: Start) -> None:
    await explored("takeover ACK 0")
    wires = [await consumer(bed, type=FAILOVER, consumer_name=name) for name in ("a", "b")]
    positions = await sender.publish(A, B)
    active, other = sorted([(await wire.rest(5), wire) for wire in wires], key=lambda each: -len(each[0]))
    await active[1].send(Type.ACK, consumer_id=0, message_id=[message_id(positions[0])], ack_type=Individual)
    await active[1].expect(Type.CLOSE_CONSUMER)
    change, *messages = await other[1].rest(5)
    assert change.command.active_consumer_change.is_active
    assert [entries.payload_of(each.trailing) for each in messages] == [b"b"]


async def test_a_consumer_alone_is_not_taken_over(bed: Bed, sender: Wire, explored: Start) -> None:
    run = await explored("takeover ACK 0")
    wire = await consumer(bed, type=FAILOVER)
    (position,) = await sender.publish(A)
    await wire.ack(position)
    await wire.rest()
    assert run.made == []


async def test_messages_of_a_shared_consumer_are_swapped(bed: Bed, sender: Wire, explored: Start) -> None:
    await explored("reorder MESSAGE 0")
    await sender.publish(A, B, C)
    assert await (await consumer(bed, type=SHARED)).payloads(3) == [b"b", b"a", b"c"]


class Sent:
    """Keep when the broker sent each message, as observers see the time."""

    def __init__(self) -> None:
        self.ns: dict[bytes, int] = {}

    def opened(self, tap: SessionTap) -> None: ...

    def frame(self, tap: SessionTap, sender: Direction, data: bytes, note: Mapping[str, Any]) -> None:
        if sender is Direction.BROKER and note.get("did") == "reordered":
            self.ns[data[-1:]] = tap.sent_ns

    def closed(self, tap: SessionTap, sender: Direction, reason: str) -> None: ...


async def test_swapped_messages_are_seen_at_the_time_of_the_later_one(bed: Bed, sender: Wire, explored: Start) -> None:
    """Otherwise a message would be seen before the end of the connection from which it comes again."""
    lab, seen = bed.broker.cluster.attached(Lab), Sent()
    lab.taps.observe(seen)
    await explored("slow-delivery MESSAGE 0 0.3", "reorder MESSAGE 1")
    wire = await consumer(bed, type=SHARED)
    await sender.publish(A)
    await sender.publish(B)
    between = time.monotonic_ns()
    await sender.publish(C)
    assert await wire.payloads(3) == [b"a", b"c", b"b"]
    assert between < seen.ns[b"c"] == seen.ns[b"b"]


async def test_messages_of_two_keys_are_swapped_and_not_those_of_one(bed: Bed, sender: Wire, explored: Start) -> None:
    await explored("reorder MESSAGE 0", "reorder MESSAGE 1")
    keyed = [plain(payload, partition_key=key) for payload, key in ((b"1", "a"), (b"2", "b"), (b"3", "a"), (b"4", "a"))]
    await sender.publish(*keyed)
    assert await (await consumer(bed, type=KEY_SHARED)).payloads(4) == [b"2", b"1", b"3", b"4"]


@pytest.mark.parametrize("kind", [pb.CommandSubscribe.Exclusive, FAILOVER, KEY_SHARED])
async def test_messages_of_ordered_subscriptions_are_never_swapped(
    bed: Bed, sender: Wire, explored: Start, kind: int
) -> None:
    await explored("reorder MESSAGE 0")
    wire = await consumer(bed, type=kind)
    await sender.publish(A, B)
    received = [each for each in await wire.rest(5) if each.command.type == Type.MESSAGE]
    assert [entries.payload_of(each.trailing) for each in received] == [b"a", b"b"]


async def test_an_unloaded_topic_keeps_what_was_confirmed(bed: Bed, sender: Wire, explored: Start) -> None:
    await explored("unload SEND 1")
    await sender.publish(A, B)
    await sender.expect(Type.CLOSE_PRODUCER)
    assert await stored(bed) == [b"a", b"b"]


@pytest.mark.serving(brokers=2)
async def test_a_topic_moves_to_the_other_broker(bed: Bed, explored: Start) -> None:
    await explored("move SEND 0")
    wire = await bed.connect()
    lookup = await wire.ask(Type.LOOKUP, topic=TOPIC)
    owner = next(each for each in bed.brokers if lookup.brokerServiceUrl.endswith(f":{each.port}"))
    wire = await bed.connect(broker=bed.brokers.index(owner))
    await wire.producer()
    await wire.publish(A)
    closed = await wire.expect(Type.CLOSE_PRODUCER)
    other = next(each for each in bed.brokers if each is not owner)
    assert closed.assignedBrokerServiceUrl == other.assigned.service_url


@pytest.mark.parametrize("command", KINDS["not-ready"].commands)
async def test_a_request_is_refused_once(bed: Bed, wire: Wire, explored: Start, command: str) -> None:
    await explored(f"not-ready {command} 0")
    subscribe: dict[str, Any] = {"subscription": "s", "subType": 0, "consumer_id": 0}
    fields: dict[str, Any] = {"LOOKUP": {}, "PRODUCER": {"producer_id": 0}, "SUBSCRIBE": subscribe}[command]
    answers = [await wire.request(getattr(Type, command), topic=TOPIC, **fields) for _ in range(2)]
    errors = [each.error.error or each.lookupTopicResponse.error for each in answers]
    assert errors == [pb.ServiceNotReady, 0]


@pytest.mark.parametrize("decision", ["slow-receipt SEND_RECEIPT 0 0.1", "slow-delivery MESSAGE 0 0.1"])
async def test_a_slow_broker_loses_nothing(bed: Bed, sender: Wire, explored: Start, decision: str) -> None:
    run = await explored(decision)
    wire = await consumer(bed)
    await sender.publish(A, B)
    assert await wire.payloads(2) == [b"a", b"b"]
    assert len(run.made) == 1


async def test_a_slow_acknowledgement_still_counts(bed: Bed, sender: Wire, explored: Start) -> None:
    await explored("slow-ack ACK 0 0.1")
    wire = await consumer(bed)
    (position,) = await sender.publish(A)
    await wire.message()
    await wire.ack(position)
    await wire.rest()
    assert bed.subscription().cursor.backlog() == 0


@pytest.mark.parametrize(
    "decision",
    [
        "slow-consumer CLOSE_CONSUMER 0 0.1",
        "slow-consumer SUBSCRIBE 1 0.1",
        "slow-consumer FLOW 1 0.1",
        "slow-consumer REDELIVER_UNACKNOWLEDGED_MESSAGES 0 0.1",
    ],
)
async def test_a_consumer_that_is_opened_again_slowly_gets_everything(
    bed: Bed, sender: Wire, explored: Start, decision: str
) -> None:
    run = await explored(decision)
    wire = await consumer(bed, type=SHARED)
    await sender.publish(A, B)
    await wire.payloads(2)
    await wire.send(Type.REDELIVER_UNACKNOWLEDGED_MESSAGES, consumer_id=0)
    await wire.ask(Type.CLOSE_CONSUMER, consumer_id=0)
    wire.inbox.clear()
    await wire.subscribe(type=SHARED, consumer_id=1)
    await wire.flow(consumer_id=1)
    assert await wire.payloads(2) == [b"a", b"b"]
    assert len(run.made) == 1


@pytest.mark.parametrize("kind", ["close-before", "close-after"])
async def test_a_consumer_is_gone_when_its_connection_ends_at_its_closing(
    bed: Bed, wire: Wire, sender: Wire, explored: Start, kind: str
) -> None:
    await explored(f"{kind} CLOSE_CONSUMER 0")
    closing = await consumer(bed)
    await closing.write(closing.numbered(Type.CLOSE_CONSUMER, consumer_id=0))
    await closing.closed()
    other = await consumer(bed)  # an Exclusive one
    await sender.publish(A)
    assert await other.payloads(1) == [b"a"]


async def test_a_delayed_message_comes_late_within_its_tick(bed: Bed, sender: Wire, explored: Start) -> None:
    run = await explored("late-delayed MESSAGE 0 0.5")
    wire = await consumer(bed, type=SHARED)
    due = bed.broker.clock.now_ms() + 5_000
    await sender.publish(plain(b"a", deliver_at_time=due))
    await wire.message(within=20)
    late = bed.broker.clock.now_ms() - due
    assert 0 <= late + 1000 <= 3000
    assert len(run.made) == 1


async def test_the_clock_jumps(bed: Bed, sender: Wire, explored: Start) -> None:
    before = bed.broker.clock.now_ms()
    await explored("clock-jump SEND 0 65")
    await sender.publish(A)
    await sender.quiet()
    assert bed.broker.clock.now_ms() - before >= 65_000


@pytest.mark.serving(Config(transactionCoordinatorEnabled=True))
async def test_a_transaction_times_out(bed: Bed, explored: Start) -> None:
    await explored("transaction-timeout END_TXN 0")
    wire = await using(bed)
    ended = await wire.request(Type.END_TXN, txn_action=pb.COMMIT, **await begin(wire))
    assert ended.endTxnResponse.error == pb.TransactionNotFound


def test_small_dispatch_is_a_setting_of_the_start() -> None:
    run = PlannedRun(Scripted(read(["small-dispatch START 0"])))
    assert run.settings() == KINDS["small-dispatch"].config


# the table of kinds


def test_every_kind_has_moments_that_exist_a_rate_and_a_reason() -> None:
    commands = {spec.name for spec in COMMANDS.values()} | {START}
    for kind in KINDS.values():
        assert {*kind.commands} <= commands
        assert 0 < kind.rate <= 1
        assert kind.does.endswith(".")
        assert kind.legal.endswith(".")


def test_the_list_has_each_kind_with_its_reason() -> None:
    text = "\n".join(listed())
    assert all(f"{kind.name} (rate" in text and kind.legal in text for kind in KINDS.values())


async def test_without_an_exploration_connections_have_no_tap(bed: Bed, sender: Wire, explored: Start) -> None:
    assert all(session.outgoing.tap is None for session in sessions_of(bed.broker))
