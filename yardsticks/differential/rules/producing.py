"""Producers, and the messages that they send."""

from __future__ import annotations

from typing import Any

import lz4.block
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from pulsarium.proto import batch
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.wire import Type, plain

from ..pair import Said
from ..program import Producer, Program, pick
from .values import ANY, IDS, LINKS, NAMES, OFTEN, SELDOM, TOPIC

ACCESS = st.sampled_from([pb.Shared] * 6 + [pb.Exclusive, pb.WaitForExclusive, pb.ExclusiveWithFencing])
FAR_FUTURE, LONG_AGO = 4_102_444_800_000, 1_000


class Producing(Program):
    """Rules that publish messages."""

    @rule(
        link=LINKS, ident=IDS, topic=TOPIC, name=NAMES, access=ACCESS, epoch=st.sampled_from([0, 0, 0, 1]), given=OFTEN
    )
    def producer(
        self, link: int, ident: int, topic: int, name: str | None, access: Any, epoch: int, given: bool
    ) -> None:
        full = self.topic(topic)
        if topic in self.terminated:
            access = pb.Shared
        elif access == pb.WaitForExclusive:
            self.awaited.add(topic)
        fields: dict[str, Any] = {} if name is None else {"producer_name": name, "user_provided_producer_name": given}
        if epoch:
            fields["epoch"] = epoch

        def there(answer: pb.BaseCommand) -> None:
            success = answer.producer_success
            known = Producer(full, success.producer_name, success.last_sequence_id + 1)
            self.producers.setdefault((link, ident), known)

        self.ask(
            self.need_link(link),
            Type.PRODUCER,
            there,
            topic=full,
            producer_id=ident,
            producer_access_mode=access,
            **fields,
        )

    @precondition(lambda self: not self.producers)
    @rule(link=LINKS, topic=st.sampled_from([0, 0, 0, 1]))
    def plain_producer(self, link: int, topic: int) -> None:
        """Open a Shared producer, so that most programs have one."""
        self.producer(link, 0, topic, None, pb.Shared, 0, True)

    @rule(link=LINKS, ident=IDS, topic=TOPIC, encrypted=SELDOM, first=st.sampled_from(["", "first"]))
    def producer_of_another_kind(self, link: int, ident: int, topic: int, encrypted: bool, first: str) -> None:
        self.ask(
            self.need_link(link),
            Type.PRODUCER,
            topic=self.topic(topic),
            producer_id=ident + 4,
            encrypted=encrypted,
            initial_subscription_name=first,
            metadata=[{"key": "k", "value": "v"}],
        )

    @precondition(lambda self: self.producers)
    @rule(
        which=ANY,
        count=st.integers(1, 4),
        size=st.integers(0, 4),
        key=st.sampled_from([None, "a", "b", "c", "d"]),
        deliver_at=st.sampled_from([None, None, None, None, LONG_AGO, FAR_FUTURE]),
        compressed=SELDOM,
    )
    def send(
        self, which: int, count: int, size: int, key: str | None, deliver_at: int | None, compressed: bool
    ) -> None:
        """Send messages, in batches of `size`, or without a batch for 0."""
        (link, ident), producer = pick(self.producers, which)
        frames = []
        for _ in range(count):
            size = size if self.batches else 0
            sequence = producer.next_sequence
            producer.next_sequence += max(1, size)
            metadata: dict[str, Any] = {"sequence_id": sequence, "producer_name": producer.name}
            if key is not None:
                metadata["partition_key"] = key
            if deliver_at is not None:
                metadata["deliver_at_time"] = deliver_at
            frames.append(self._send(ident, sequence, size, metadata, compressed))
        self._send_all(link, producer, frames, delayed=deliver_at == FAR_FUTURE)

    def _send(self, ident: int, sequence: int, size: int, metadata: dict[str, Any], compressed: bool) -> Said:
        payload = b"%d" % sequence
        if size:
            singles = [(pb.SingleMessageMetadata(payload_size=3), b"m.%d" % i) for i in range(size)]
            payload = batch.pack(singles)
            metadata["num_messages_in_batch"] = size
        if compressed:
            metadata |= {"compression": pb.LZ4, "uncompressed_size": len(payload)}
            payload = lz4.block.compress(payload, store_size=False)
        fields = {"producer_id": ident, "sequence_id": sequence, "num_messages": max(1, size)}
        return Said(Type.SEND, fields, plain(payload, **metadata))

    def _send_all(self, link: int, producer: Producer, frames: list[Said], *, delayed: bool = False) -> None:
        """Send frames in one write. With a waiting consumer, send them singly: a real broker reads any number."""
        self.filled.add(producer.topic)
        if all(consumer.topic != producer.topic for consumer in self.consumers.values()):
            self.tell(link, *frames)
            return
        for frame in frames:
            if link in self.links:
                self.tell(link, frame)
                if delayed:
                    self.have_read(producer.topic)

    @precondition(lambda self: self.producers)
    @rule(which=ANY, what=st.integers(0, 6))
    def send_something_odd(self, which: int, what: int) -> None:
        (link, ident), producer = pick(self.producers, which)
        sequence = producer.next_sequence
        producer.next_sequence += 1
        fields: dict[str, Any] = {"producer_id": ident, "sequence_id": sequence, "num_messages": 1}
        metadata: dict[str, Any] = {"sequence_id": sequence, "producer_name": producer.name}
        data = plain(b"odd", **metadata)
        if what == 0:
            fields["highest_sequence_id"] = sequence + 3
            fields["num_messages"] = 4
        elif what == 1:  # a wrong checksum
            data = data[:2] + b"\0\0\0\0" + data[6:]
        elif what == 2:
            data = plain(b"odd", checksum=False, **metadata)
        elif what == 3:
            data = plain(b"odd", null_value=True, partition_key="a", **metadata)
        elif what == 4:
            data = plain(b"odd", **metadata | {"sequence_id": 0})
            fields["sequence_id"] = 0
        elif what == 5:
            data = plain(b"", properties=[{"key": "k", "value": "v"}], event_time=5, ordering_key=b"o", **metadata)
        self.tell(link, Said(Type.SEND, fields, data))

    @precondition(lambda self: self.producers)
    @rule(which=ANY, key=st.sampled_from([None, "a"]))
    def send_chunks(self, which: int, key: str | None) -> None:
        """Send a message in two chunks."""
        self.chunks = True
        (link, ident), producer = pick(self.producers, which)
        sequence = producer.next_sequence
        producer.next_sequence += 1
        metadata: dict[str, Any] = {"sequence_id": sequence, "producer_name": producer.name}
        metadata |= {"uuid": f"{producer.name}-{sequence}", "num_chunks_from_msg": 2, "total_chunk_msg_size": 4}
        if key is not None:
            metadata["partition_key"] = key
        frames = []
        for chunk in range(2):
            data = plain(b"%d." % chunk, chunk_id=chunk, **metadata)
            fields = {"producer_id": ident, "sequence_id": sequence, "num_messages": 1, "is_chunk": True}
            frames.append(Said(Type.SEND, fields, data))
        self._send_all(link, producer, frames)

    @precondition(lambda self: self.producers)
    @rule(which=ANY)
    def close_producer(self, which: int) -> None:
        (link, ident), _ = pick(self.producers, which)

        def gone(_: pb.BaseCommand) -> None:
            self.producers.pop((link, ident), None)

        self.ask(link, Type.CLOSE_PRODUCER, gone, producer_id=ident)

    @precondition(lambda self: self.links)
    @rule(which=ANY, send=SELDOM)
    def unknown_producer(self, which: int, send: bool) -> None:
        link = self.some_link(which)
        if send:
            self.tell(link, Said(Type.SEND, {"producer_id": 77, "sequence_id": 0}, plain(b"x")))
        else:
            self.ask(link, Type.CLOSE_PRODUCER, producer_id=77)
