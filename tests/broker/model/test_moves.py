"""Notes of topics whose messages or clients moved."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
import trio
import trio.lowlevel

from pulsarium.broker.model.moves import Moves
from pulsarium.proto.topic_name import TopicName
from tests.broker.wire import TOPIC, Bed, Earliest, Shared, Type, Wire, message_id, plain


class Mover:
    """A topic of a test."""

    moved = False


def test_without_a_listener_nothing_is_kept() -> None:
    moves = Moves()
    moves.note(Mover())
    moves.forget("t")
    assert moves.take() == ([], [])


def test_the_listener_hears_the_first_note_after_each_take() -> None:
    moves, heard, one, other = Moves(), list[int](), Mover(), Mover()
    moves.listen(lambda: heard.append(len(heard)))
    moves.note(one)
    moves.note(other)
    moves.forget("t")
    assert heard == [0]
    assert moves.take() == ([one, other], ["t"])
    assert (one.moved, other.moved, moves.are_noted) == (False, False, False)
    moves.forget("t")
    assert heard == [0, 1]


def test_a_listener_that_stops_leaves_no_note() -> None:
    moves, one = Moves(), Mover()
    moves.listen(lambda: None)
    moves.note(one)
    moves.ignore()
    assert (one.moved, moves.are_noted) == (False, False)


def test_the_names_change_with_topics_that_come_and_go() -> None:
    moves = Moves()
    before = moves.names
    moves.note(Mover())
    assert moves.names == before
    moves.meet(Mover())
    assert moves.names == before + 1
    moves.forget("t")
    assert moves.names == before + 2


async def produce(wire: Wire, bed: Bed) -> None:
    await wire.producer()


async def leave_as_producer(wire: Wire, bed: Bed) -> None:
    await wire.ask(Type.CLOSE_PRODUCER, producer_id=9)


async def publish(wire: Wire, bed: Bed) -> None:
    await wire.publish(plain(b"x"), producer_id=9)


async def subscribe(wire: Wire, bed: Bed) -> None:
    await wire.subscribe(name="other", consumer_id=1)


async def receive(wire: Wire, bed: Bed) -> None:
    await wire.flow(1)
    await wire.message()


async def acknowledge(wire: Wire, bed: Bed) -> None:
    await wire.ack(bed.topic().ledger.last_confirmed)


async def acknowledge_without_a_consumer(wire: Wire, bed: Bed) -> None:
    bed.subscription().acknowledge(None, [bed.topic().ledger.last_confirmed], save_now=False)


async def ask_again(wire: Wire, bed: Bed) -> None:
    await receive(wire, bed)
    await wire.alive()
    bed.broker.cluster.moves.take()
    await wire.redeliver([bed.topic().ledger.last_confirmed])
    await wire.alive()


async def seek(wire: Wire, bed: Bed) -> None:
    await wire.request(Type.SEEK, consumer_id=0, message_id=message_id(bed.topic().ledger.last_confirmed))


async def leave_as_consumer(wire: Wire, bed: Bed) -> None:
    await wire.ask(Type.CLOSE_CONSUMER, consumer_id=0)


async def unsubscribe(wire: Wire, bed: Bed) -> None:
    bed.topic().unsubscribe("sub")


async def load(wire: Wire, bed: Bed) -> None:
    bed.broker.topics.unload(TopicName.parse(TOPIC))
    bed.broker.cluster.moves.take()
    bed.topic()


MOVES: list[Callable[[Wire, Bed], Awaitable[None]]] = [
    produce,
    leave_as_producer,
    publish,
    subscribe,
    receive,
    acknowledge,
    acknowledge_without_a_consumer,
    ask_again,
    seek,
    leave_as_consumer,
    unsubscribe,
    load,
]


@pytest.mark.parametrize("move", MOVES)
async def test_a_topic_notes_what_changes_its_numbers(
    wire: Wire, bed: Bed, move: Callable[[Wire, Bed], Awaitable[None]]
) -> None:
    moves = bed.broker.cluster.moves
    moves.listen(lambda: None)
    await wire.producer(producer_id=9)
    await wire.subscribe(type=Shared, initialPosition=Earliest)
    await wire.publish(plain(b"x"), producer_id=9)
    await trio.sleep(1)
    moves.take()
    await move(wire, bed)
    await trio.lowlevel.checkpoint()
    assert bed.topic() in moves.take()[0]


async def test_a_topic_at_rest_notes_nothing(wire: Wire, bed: Bed) -> None:
    moves = bed.broker.cluster.moves
    moves.listen(lambda: None)
    await wire.producer()
    await wire.subscribe(type=Shared)
    await wire.flow()
    await wire.alive()
    moves.take()
    await trio.sleep(10)
    assert moves.take() == ([], [])


async def test_a_non_persistent_topic_notes_messages_that_nobody_receives(wire: Wire, bed: Bed) -> None:
    moves = bed.broker.cluster.moves
    moves.listen(lambda: None)
    name = "non-persistent://public/default/t"
    await wire.producer(name)
    moves.take()
    await wire.publish(plain(b"x"))
    assert moves.take()[0] == [bed.broker.topics.loaded[name]]
