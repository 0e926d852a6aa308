"""Deduplication over repeated sends, failed commits, lost connections and restarts: each message is stored once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import pytest
import trio
from hypothesis import example, given
from hypothesis import strategies as st

from pulsarium.broker.cluster import Cluster
from pulsarium.broker.model.client import AssignedBroker
from pulsarium.broker.model.ledger.managed_ledger import PendingPublish
from pulsarium.broker.model.ledger.position import NOT_STORED
from pulsarium.broker.model.topic.persistent import PersistentTopic
from pulsarium.broker.model.topic.producers import Producer, ProducerOptions
from pulsarium.proto.entry import parse_metadata
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.topic_name import TopicName
from tests.broker.held import HeldStorage
from tests.broker.model.stores import cluster_of, read_all
from tests.broker.wire import plain

NAME = TopicName.parse("t")
NO_SEQUENCE = 2**64 - 1


class Sent(NamedTuple):
    """A message with its sequence ids: a single message, a batch with several ids, or chunks with one id."""

    sequence_id: int
    highest: int
    chunks: int

    def entries(self, name: str) -> Iterator[bytes]:
        fields: dict[str, Any] = {"producer_name": name, "sequence_id": self.sequence_id}
        if self.highest > self.sequence_id:
            fields |= {"highest_sequence_id": self.highest, "num_messages_in_batch": 2}
        for chunk in range(self.chunks):
            if self.chunks > 1:
                fields |= {"uuid": "u", "chunk_id": chunk, "num_chunks_from_msg": self.chunks}
            yield plain(b"x", **fields)


class Sender:
    """A client that reconnects and then sends all messages without a receipt again, in order."""

    address = "/sender:1"

    def __init__(self, name: str) -> None:
        self.name = name
        self.sent: list[Sent] = []
        self.unanswered: dict[int, Sent] = {}
        self.producer: Producer | None = None
        self.topic: PersistentTopic

    def connect(self, topic: PersistentTopic) -> None:
        self.topic = topic
        options = ProducerOptions(producer_id=0, request_id=0, name=self.name)
        self.producer, _ = topic.add_producer(self, options)  # type: ignore[arg-type]
        for message in list(self.unanswered.values()):
            self.send(message)

    def new(self, ids: int, chunks: int) -> None:
        first = self.sent[-1].highest + 1 if self.sent else 0
        message = Sent(first, first + ids - 1, chunks)
        self.sent.append(message)
        self.unanswered[first] = message
        self.send(message)

    def send(self, message: Sent) -> None:
        for entry in message.entries(self.name):
            if self.producer is not None:
                highest = message.highest if message.highest > message.sequence_id else NO_SEQUENCE
                pending = PendingPublish(
                    self.producer, entry, message.sequence_id, highest, is_chunk=message.chunks > 1
                )
                self.producer.publish(pending)

    def send_receipts(self, producer_id: int, entries: Sequence[PendingPublish]) -> None:
        for entry in entries:
            if entry.position == NOT_STORED or is_last(self.topic.ledger.read_now(entry.position)):
                self.unanswered.pop(entry.sequence_id, None)

    def send_error(self, producer_id: int, sequence_id: int, code: int, text: str, **about: object) -> None:
        assert code == pb.PersistenceError

    def publish_finished(self, count: int) -> None: ...

    def close_producer(self, producer_id: int, assigned: AssignedBroker | None = None) -> None:
        self.producer = None


def is_last(entry: bytes) -> bool:
    metadata = parse_metadata(entry)
    return metadata.chunk_id == metadata.num_chunks_from_msg - 1 if metadata.HasField("chunk_id") else True


class World:
    """A topic with deduplication and its clients, on a store that holds commits back."""

    def __init__(self) -> None:
        self.store = HeldStorage()
        self.senders = [Sender("a"), Sender("b")]
        self.start()
        self.topic().subscribe("keeps everything", earliest=True)
        self.settle()

    def start(self) -> None:
        self.store.holding = True
        self.cluster: Cluster = cluster_of(
            self.store,
            brokerDeduplicationEnabled=True,
            brokerDeduplicationEntriesInterval=3,
            managedLedgerMaxEntriesPerLedger=4,
            managedLedgerMinLedgerRolloverTimeMinutes=0,
        )
        self.topics = self.cluster.topics

    def topic(self) -> PersistentTopic:
        topic = self.topics.create(NAME)
        assert isinstance(topic, PersistentTopic)
        return topic

    def connect(self) -> None:
        for sender in self.senders:
            if sender.producer is None:
                sender.connect(self.topic())
        self.cluster.turn.finish()

    def step(self, verb: str, which: int, number: int) -> None:
        sender = self.senders[which]
        self.connect()
        if verb == "send":
            for _ in range(number % 3 + 1):
                sender.new(1, 1)
        elif verb == "batch":
            sender.new(number % 3 + 2, 1)
        elif verb == "chunks":
            sender.new(1, number % 3 + 2)
        elif verb == "again" and sender.sent:
            for message in sender.sent[-(number % 4) - 1 :]:
                sender.send(message)
        elif verb == "commit":
            self.store.release(min(number % 4 + 1, len(self.store.waiting)))
        elif verb == "fail" and self.store.waiting:
            self.store.fail()  # later messages fail too, at the next commits
        elif verb == "full":
            for _ in range(number):  # clients cannot even reconnect
                self.connect()
                self.store.fail(len(self.store.waiting))
        elif verb == "unload":
            self.topics.unload(NAME)
        elif verb == "leave" and sender.producer is not None:
            self.topic().producers.remove(sender.producer)
            sender.producer = None
        elif verb == "crash":
            self.store.release(min(number, len(self.store.waiting)))
            self.restart()
        elif verb == "settle":
            self.settle()
            self.restart()
        self.cluster.turn.finish()

    def restart(self) -> None:
        """Restart the broker. Everything that is not committed is lost."""
        self.store.waiting.clear()
        for sender in self.senders:
            sender.producer = None
        self.start()

    def settle(self) -> None:
        """Commit everything, and reconnect the clients until all of them have their receipts."""
        for _ in range(4):
            self.connect()
            self.cluster.turn.finish()
            while self.store.waiting:
                self.store.release(1)
            for sender in self.senders:
                if sender.unanswered and sender.producer is not None:
                    self.topic().producers.remove(sender.producer)
                    sender.producer = None
        assert not any(sender.unanswered for sender in self.senders)

    def stored(self, sender: Sender) -> list[int]:
        """Return the sequence ids of a sender's complete messages, in the order of the ledger."""
        metadata = [parse_metadata(entry) for _, entry in read_all(self.topic().ledger) if is_last(entry)]
        return [each.sequence_id for each in metadata if each.producer_name == sender.name]


VERBS = [
    "send",
    "send",
    "send",
    "batch",
    "chunks",
    "again",
    "commit",
    "commit",
    "fail",
    "fail",
    "full",
    "unload",
    "leave",
    "crash",
    "settle",
]


@pytest.mark.req("B-27")
@given(st.lists(st.tuples(st.sampled_from(VERBS), st.integers(0, 1), st.integers(0, 5)), max_size=30))
@example([("crash", 0, 0), ("fail", 0, 0), ("send", 0, 0)])  # a new ledger that is not stored
@example([*[("send", 0, 2)] * 3, ("fail", 0, 0), ("commit", 0, 1), ("crash", 0, 0)])  # a rollover after a failed commit
def test_nothing_is_stored_twice_and_nothing_new_is_dropped(program: list[tuple[str, int, int]]) -> None:
    async def check() -> None:
        world = World()
        for verb, which, number in program:
            world.step(verb, which, number)
        world.settle()
        world.restart()  # messages with a receipt survive
        world.settle()
        for sender in world.senders:
            assert world.stored(sender) == [message.sequence_id for message in sender.sent]
        deduplication = world.topic().deduplication
        assert deduplication is not None
        for sender in world.senders:
            assert deduplication.last_sequence_id(sender.name) == (sender.sent[-1].highest if sender.sent else -1)

    trio.run(check)
