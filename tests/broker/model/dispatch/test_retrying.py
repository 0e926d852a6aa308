"""Key_Shared after negative acknowledgements: later messages of a key wait for the first (PIP-493)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import count
from random import Random
from typing import Any

import pytest

from pulsarium.broker.config import Config, profile_of
from pulsarium.broker.config.proposals import NEGATIVE_ACKS
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.subscription.reasons import Reason
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.model.dispatch.sharing import dispatcher, got, joined, keyed, payloads, reason, sticky, why
from tests.broker.web.admin.rest import Rest
from tests.broker.wire import Bed, Message, Shared, Type, Wire, batch_of, message_id, serving

ON = profile_of("pip", pip=[NEGATIVE_ACKS])
STATS = "/admin/v2/persistent/public/default/t"
COLLIDING = ("key-0", "twin-24603")  # keys of one hash
LOOSE: dict[str, Any] = {
    "keySharedMeta": {"keySharedMode": pb.KeySharedMode.AUTO_SPLIT, "allowOutOfOrderDelivery": True}
}

pytestmark = pytest.mark.serving(profile=ON)


async def nack(
    wire: Wire, refused: Iterable[Position] = (), returned: Iterable[Position] = (), consumer_id: int = 0
) -> None:
    fields: dict[str, Any] = {"negative_acked": [*map(message_id, refused)], "returned": [*map(message_id, returned)]}
    await wire.send(Type.NEGATIVE_ACK, consumer_id=consumer_id, **fields)


def texts(messages: Iterable[Message]) -> list[str]:
    return [message.payload.decode() for message in messages]


async def refused_first(bed: Bed, sender: Wire, **fields: Any) -> tuple[Wire, list[Position]]:
    """Deliver messages 0 to 3 of the keys a and b in turn. Refuse the first, and return those of its key."""
    wire = await joined(bed, "c0", **fields)
    sent = await sender.publish(*keyed("abab"))
    await got(wire)
    await nack(wire, [sent[0]], [sent[2]])
    return wire, sent


async def test_later_messages_of_the_key_wait_until_the_first_is_acknowledged(bed: Bed, sender: Wire) -> None:
    wire, sent = await refused_first(bed, sender)
    later = await sender.publish(*keyed("ab"))
    assert await payloads(wire) == [b"b 1"]
    assert [why(bed, position) for position in (sent[0], sent[2], later[0])] == [
        Reason.DELIVERED,
        Reason.RETRYING,
        Reason.RETRYING,
    ]
    await wire.redeliver([sent[0]])
    again = await got(wire)
    assert [(each.payload, each.redelivery_count) for each in again] == [(b"a 0", 1)]
    await wire.ack(sent[0])
    assert [(each.payload, each.redelivery_count) for each in await got(wire)] == [(b"a 2", 0), (b"a 0", 0)]
    assert len(dispatcher(bed).retrying) == 0


async def test_a_second_refusal_of_the_same_message_changes_nothing(bed: Bed, sender: Wire) -> None:
    wire, sent = await refused_first(bed, sender)
    await wire.redeliver([sent[0]])
    await nack(wire, [sent[0]])
    await wire.redeliver([sent[0]])
    assert [each.redelivery_count for each in await got(wire)] == [1, 2]
    await wire.ack(sent[0])
    assert await payloads(wire) == [b"a 2"]


async def test_refused_messages_of_a_key_come_again_one_by_one(bed: Bed, sender: Wire) -> None:
    wire = await joined(bed, "c0")
    sent = await sender.publish(*keyed("aaaa"))
    await got(wire)
    await nack(wire, [sent[2]])
    await nack(wire, [sent[0], sent[1]], [sent[3]])
    await wire.redeliver([sent[2], sent[1], sent[0]])
    for number in range(4):
        assert await payloads(wire) == [b"a %d" % number]
        await wire.ack(sent[number])


async def test_a_message_before_the_refused_one_is_delivered(bed: Bed, sender: Wire) -> None:
    """The first message comes from a consumer that left. If it was held back, it would block its key for good."""
    wire = await joined(bed, "c0")
    sent = await sender.publish(*keyed("aaa"))
    await got(wire)
    await nack(wire, [sent[1]])
    other = await joined(bed, "c1")
    await wire.aclose()
    assert await payloads(other) == [b"a 0", b"a 1"]
    await other.ack(sent[1])
    assert await payloads(other) == [b"a 2"]


async def test_keys_of_one_hash_wait_together(bed: Bed, sender: Wire) -> None:
    wire = await joined(bed, "c0")
    hashes = {dispatcher(bed).selector.hash_of_key(key.encode()) for key in COLLIDING}
    assert len(hashes) == 1
    (first,) = await sender.publish(*keyed(COLLIDING[:1]))
    await got(wire)
    await nack(wire, [first])
    await sender.publish(*keyed(COLLIDING[1:]))
    assert await payloads(wire) == []
    await wire.ack(first)
    assert await payloads(wire) == [b"twin-24603 0"]


async def test_messages_that_wait_for_permits_wait_behind_the_refused_one(bed: Bed, sender: Wire) -> None:
    wire = await joined(bed, "c0", permits=1)
    other = await joined(bed, "c1")
    sent = await sender.publish(*keyed(["key-0"] * 2))
    assert len(await got(wire)) == 1
    assert why(bed, sent[1]) is Reason.WAITING
    await nack(wire, [sent[0]])
    await wire.flow(100)
    assert await payloads(wire) == []
    await wire.ack(sent[0])
    assert (await payloads(wire), await payloads(other)) == ([b"key-0 1"], [])


async def test_the_next_consumer_of_a_key_gets_the_refused_message_alone(bed: Bed, sender: Wire) -> None:
    """The consumer that refused the message is closed before it asks for the redelivery."""
    wire, sent = await refused_first(bed, sender)
    other = await joined(bed, "c1")
    await wire.aclose()
    assert texts(await got(other)) == ["a 0", "b 1", "b 3"]
    await sender.publish(*keyed("a"))
    assert await payloads(other) == []
    await other.ack(sent[0])
    assert await payloads(other) == [b"a 2", b"a 0"]


@pytest.mark.parametrize("asked", [True, False])
async def test_hashes_that_move_take_their_refused_messages_along(bed: Bed, sender: Wire, asked: bool) -> None:
    wire = await joined(bed, "c0")
    sent = await sender.publish(*keyed(["key-3"] * 2))  # a key that moves to c1
    await got(wire)
    await nack(wire, [sent[0]], [sent[1]])
    if asked:
        await wire.redeliver([sent[0]])
        await got(wire)
    other = await joined(bed, "c1")
    assert await payloads(other) == []  # the hash drains
    await wire.redeliver([sent[0]])
    assert await payloads(other) == [b"key-3 0"]
    await other.ack(sent[0])
    assert await payloads(other) == [b"key-3 1"]


async def test_sticky_ranges_keep_the_order_too(bed: Bed, sender: Wire) -> None:
    wire, sent = await refused_first(bed, sender, keySharedMeta=sticky((0, 65535)))
    await wire.redeliver([sent[0]])
    assert await payloads(wire) == [b"a 0"]
    await wire.ack(sent[0])
    assert await payloads(wire) == [b"a 2"]


async def test_a_batch_is_acknowledged_when_all_its_messages_are(bed: Bed, sender: Wire) -> None:
    wire = await joined(bed, "c0")
    batch, single = await sender.publish(batch_of(b"0", b"1", b"2", partition_key="a"), *keyed("a"))
    await got(wire)
    await wire.ack(message_id=[message_id(batch, ack_set=[0b110])])
    await nack(wire, [batch], [single])
    await wire.ack(message_id=[message_id(batch, ack_set=[0b100])])
    await wire.ack(message_id=[message_id(batch, ack_set=[0b100])])  # again, which changes nothing
    assert await payloads(wire) == []
    await wire.redeliver([batch])
    (again,) = await got(wire)
    assert list(again.command.ack_set) == [0b100]
    await wire.ack(message_id=[message_id(batch, ack_set=[0b011])])
    assert await payloads(wire) == [b"a 0"]


async def test_an_acknowledgement_before_the_redelivery_ends_the_wait(bed: Bed, sender: Wire) -> None:
    wire, sent = await refused_first(bed, sender)
    await wire.ack(sent[0])
    await wire.redeliver([sent[0]])
    assert await payloads(wire) == [b"a 2"]


@pytest.mark.parametrize("path", ["skip/1", "skip_all", "expireMessages/1"])
async def test_a_mark_delete_position_behind_the_refused_message_ends_the_wait(
    bed: Bed, rest: Rest, sender: Wire, path: str
) -> None:
    wire = await joined(bed, "c0")
    sent = await sender.publish(*keyed("aa"))
    await got(wire)
    await nack(wire, [sent[0]], [sent[1]])
    await wire.redeliver([sent[0]])
    await got(wire)
    await rest.done("POST", f"{STATS}/subscription/sub/{path}")
    await sender.publish(*keyed("a"))
    assert len(dispatcher(bed).retrying) == 0
    assert (await payloads(wire))[-1] == b"a 0"


async def test_a_seek_forgets_what_was_refused(bed: Bed, sender: Wire) -> None:
    wire, _ = await refused_first(bed, sender)
    await wire.ask(Type.SEEK, consumer_id=0, message_publish_time=0)
    wire.inbox.clear()
    again = await joined(bed, "c0")
    assert texts(await got(again)) == ["a 0", "b 1", "a 2", "b 3"]


async def test_what_was_refused_is_forgotten_with_the_last_consumer(bed: Bed, sender: Wire) -> None:
    wire, _ = await refused_first(bed, sender)
    await wire.aclose()
    again = await joined(bed, "c0")
    assert texts(await got(again)) == ["a 0", "b 1", "a 2", "b 3"]


async def test_an_unload_forgets_what_was_refused(bed: Bed, rest: Rest, sender: Wire) -> None:
    await refused_first(bed, sender)
    await rest.done("PUT", f"{STATS}/unload")
    again = await joined(bed, "c0")
    assert texts(await got(again)) == ["a 0", "b 1", "a 2", "b 3"]


@pytest.mark.parametrize("fields", [LOOSE, {"type": Shared}])
async def test_where_keys_have_no_order_only_returned_messages_come_again(
    bed: Bed, sender: Wire, fields: dict[str, Any]
) -> None:
    wire, _ = await refused_first(bed, sender, **fields)
    assert [(each.payload, each.redelivery_count) for each in await got(wire)] == [(b"a 2", 0)]
    await sender.publish(*keyed("a"))
    assert await payloads(wire) == [b"a 0"]


@pytest.mark.serving(Config(keySharedNegativeAckOrderingEnabled=False), profile=ON)
async def test_a_broker_may_keep_no_order_of_refused_messages(bed: Bed, sender: Wire) -> None:
    wire = bed.dial()
    connected = await wire.connect()
    assert not connected.feature_flags.supports_key_ordered_negative_ack
    wire, _ = await refused_first(bed, sender)
    assert await payloads(wire) == [b"a 2"]


@pytest.mark.serving(Config(subscriptionKeySharedUseClassicPersistentImplementation=True), profile=ON)
async def test_the_classic_dispatcher_keeps_no_order_of_refused_messages(bed: Bed, sender: Wire) -> None:
    wire, _ = await refused_first(bed, sender)
    assert await payloads(wire) == [b"a 2"]


async def test_only_messages_that_the_consumer_has_are_refused_or_returned(bed: Bed, sender: Wire) -> None:
    wire, other = await joined(bed, "c0"), await joined(bed, "c1")
    sent = await sender.publish(*keyed(["key-0", "key-3"]))  # one for each
    await got(wire)
    await got(other)
    await wire.ack(sent[0])
    nowhere = Position(2**40, 7)
    await nack(wire, [*sent, nowhere], [sent[1], nowhere])
    await wire.alive()
    assert len(dispatcher(bed).retrying) == 0
    assert await payloads(other) == []


async def test_other_parts_of_the_ids_change_nothing(bed: Bed, sender: Wire) -> None:
    wire = await joined(bed, "c0")
    parts: dict[str, Any] = {"partition": 3, "batch_index": 0, "batch_size": 9, "ack_set": [0]}
    parts["first_chunk_message_id"] = message_id(Position(5, 5))
    batch, single = await sender.publish(batch_of(b"0", b"1", partition_key="a"), *keyed("a"))
    await got(wire)
    ids: dict[str, Any] = {"negative_acked": [message_id(batch, **parts)], "returned": [message_id(single, **parts)]}
    await wire.send(Type.NEGATIVE_ACK, consumer_id=0, **ids)
    assert await payloads(wire) == []
    await wire.redeliver([batch])
    assert [list(each.command.ack_set) for each in await got(wire)] == [[]]


async def test_a_message_in_both_lists_counts_as_refused(bed: Bed, sender: Wire) -> None:
    wire = await joined(bed, "c0")
    (sent,) = await sender.publish(*keyed("a"))
    await got(wire)
    await nack(wire, [sent], [sent])
    assert await payloads(wire) == []
    assert why(bed, sent) is Reason.DELIVERED


async def test_thousands_of_messages_are_refused_and_returned_in_one_command(bed: Bed, sender: Wire) -> None:
    wire = await joined(bed, "c0", permits=10_000)
    sent = await sender.publish(*keyed([f"key-{number // 2}" for number in range(4_000)]))
    await got(wire)
    await nack(wire, sent[::2], sent[1::2])
    await wire.alive()
    assert await payloads(wire) == []
    retrying = dispatcher(bed).retrying
    assert len(retrying) == 2_000
    assert sum(map(len, retrying.held)) == 2_000


async def test_the_unacknowledged_messages_of_a_consumer_are_counted(bed: Bed, rest: Rest, sender: Wire) -> None:
    wire, sent = await refused_first(bed, sender)
    await wire.alive()
    (found,) = (await rest.get(f"{STATS}/stats"))["subscriptions"].values()
    shown = ("unackedMessages", "msgInReplay", "retryingHashesCount", "retryingPositionsCount")
    assert [found[name] for name in shown] == [3, 1, 1, 1]
    await wire.ack(sent[0])
    (found,) = (await rest.get(f"{STATS}/stats"))["subscriptions"].values()
    assert [found[name] for name in shown] == [3, 0, 0, 0]


@pytest.mark.serving(Config(keySharedNegativeAckMaxRetryingPositionsPerSubscription=2), profile=ON)
async def test_too_many_refused_messages_stop_all_others(bed: Bed, sender: Wire) -> None:
    wire = await joined(bed, "c0")
    sent = await sender.publish(*keyed("abcd"))
    await got(wire)
    await nack(wire, sent[:3], sent[3:])  # more than the limit, which stops deliveries alone
    await sender.publish(*keyed("e"))
    await wire.redeliver([sent[1]])
    assert await payloads(wire) == [b"b 1"]
    assert (reason(bed), why(bed, sent[3])) == (Reason.RETRYING_LIMIT, Reason.RETRYING)
    await wire.ack(sent[0])
    assert await payloads(wire) == []
    await wire.ack(sent[1])
    assert await payloads(wire) == [b"d 3", b"e 0"]


@pytest.mark.serving(Config(transactionCoordinatorEnabled=True), profile=ON)
@pytest.mark.parametrize("end", [pb.COMMIT, pb.ABORT])
async def test_only_a_commit_of_its_acknowledgement_ends_the_wait(bed: Bed, sender: Wire, end: int) -> None:
    wire, sent = await refused_first(bed, sender)
    txn = {"txnid_least_bits": 1, "txnid_most_bits": 0}
    await wire.ack(sent[0], **txn)
    assert await payloads(wire) == []
    assert why(bed, sent[2]) is Reason.RETRYING
    await wire.ask(
        Type.END_TXN_ON_SUBSCRIPTION,
        subscription={"topic": "persistent://public/default/t", "subscription": "sub"},
        txn_action=end,
        **txn,
    )
    assert await payloads(wire) == [b"a 2" if end == pb.COMMIT else b"a 0"]


async def test_held_messages_count_for_the_look_ahead(autojump_clock: object) -> None:
    config = Config(keySharedLookAheadMsgInReplayThresholdPerConsumer=10, dispatcherMaxReadBatchSize=5)
    async with serving(config, profile=ON) as bed:
        sender = await bed.connect()
        await sender.producer()
        wire = await joined(bed, "c0")
        (first,) = await sender.publish(*keyed("a"))
        await got(wire)
        await nack(wire, [first])
        await sender.publish(*keyed("a" * 20 + "b"))
        assert (await payloads(wire), reason(bed)) == ([], Reason.LOOK_AHEAD)
        await wire.ack(first)
        assert len(await payloads(wire)) == 21


async def test_without_the_proposal_the_command_is_unknown(autojump_clock: object) -> None:
    async with serving() as bed:
        wire = bed.dial()
        connected = await wire.connect()
        assert not connected.feature_flags.supports_key_ordered_negative_ack
        await nack(wire)
        await wire.closed()


async def test_with_the_proposal_the_broker_says_so(bed: Bed) -> None:
    wire = bed.dial()
    assert (await wire.connect()).feature_flags.supports_key_ordered_negative_ack
    await nack(wire, consumer_id=7)  # which does not exist
    await wire.alive()


def test_the_numbers_of_the_command_are_the_drafts() -> None:
    numbers = {name: field.number for name, field in pb.CommandNegativeAck.DESCRIPTOR.fields_by_name.items()}
    assert numbers == {"consumer_id": 1, "negative_acked": 2, "returned": 3}
    flags = pb.FeatureFlags.DESCRIPTOR.fields_by_name
    assert flags["supports_key_ordered_negative_ack"].number == 10


class Program:
    """Consumers that refuse, acknowledge, return and close at random. Every delivery is checked."""

    def __init__(self, bed: Bed, sender: Wire, seed: int) -> None:
        self.bed, self.sender, self.random = bed, sender, Random(seed)
        self.held: dict[Wire, dict[Position, str]] = {}
        self.refused: dict[str, set[Position]] = defaultdict(set)
        self.key_of: dict[Position, str] = {}
        self.left: set[Position] = set()
        self.names = count()

    async def join(self) -> None:
        self.held[await joined(self.bed, f"c{next(self.names)}")] = {}

    async def collect(self) -> None:
        """Take what has arrived, and check that nothing refused comes before."""
        for wire, held in self.held.items():
            for message in await got(wire):
                key = self.key_of[message.position]
                assert message.position <= min(self.refused[key], default=message.position)
                held[message.position] = key

    async def acknowledge(self, wire: Wire, position: Position) -> None:
        await wire.ack(position)
        self.refused[self.held[wire].pop(position)].discard(position)
        self.left.discard(position)

    async def refuse(self, wire: Wire, position: Position) -> None:
        """Refuse a message, return the later ones of its key as a client does, and ask for the redelivery."""
        held = self.held[wire]
        key = held[position]
        self.refused[key].add(position)
        first = min(self.refused[key])
        returned = [each for each in held if held[each] == key and each > first and each != position]
        for each in (position, *returned):
            held.pop(each)
        await nack(wire, [position], returned)
        await wire.redeliver([position])

    async def close(self, wire: Wire) -> None:
        if len(self.held) > 1:  # the last one forgets what was refused
            del self.held[wire]
            await wire.aclose()

    async def step(self) -> None:
        wire = self.random.choice(list(self.held))
        held = list(self.held[wire])
        what = self.random.choices(("publish", "ack", "nack", "close", "join"), (3, 5, 4, 1, 1))[0]
        if what == "publish":
            keys = [self.random.choice("abcde") for _ in range(4)]
            for key, position in zip(keys, await self.sender.publish(*keyed(keys)), strict=True):
                self.key_of[position] = key
                self.left.add(position)
        elif what == "join" and len(self.held) < 4:
            await self.join()
        elif what == "close":
            await self.close(wire)
        elif held and what in ("ack", "nack"):
            await (self.acknowledge if what == "ack" else self.refuse)(wire, self.random.choice(held))


@pytest.mark.parametrize("seed", range(8))
async def test_nothing_comes_before_what_was_refused_and_nothing_is_lost(bed: Bed, sender: Wire, seed: int) -> None:
    program = Program(bed, sender, seed)
    await program.join()
    for _ in range(120):
        await program.step()
        await program.collect()
    for _ in range(len(program.left) + 1):
        for wire, held in program.held.items():
            for position in list(held):
                await program.acknowledge(wire, position)
        await program.collect()
    assert program.left == set()
    assert (len(dispatcher(bed).retrying), dispatcher(bed).waiting_count) == (0, 0)
