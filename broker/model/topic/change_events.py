"""Publish changes of topic policies in `__change_events`, and apply the changes that clients publish there.

REST owns the policies, and the store keeps them. So a starting broker does not read the topic.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any, Final

from pulsarium.broker.logs import PartLog
from pulsarium.broker.model.errors import BrokerServiceError
from pulsarium.broker.model.ledger.managed_ledger import PendingPublish, Unwatched
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.namespace.metadata import Metadata, global_of, local_of, with_part
from pulsarium.broker.model.policy.event import (
    EVENT_CODEC,
    EVENT_PROPERTIES,
    EVENT_SCHEMA,
    PolicyEvent,
    decode,
    encode,
    key_of,
    topic_of_key,
)
from pulsarium.broker.model.schema.compatibility import ALWAYS
from pulsarium.broker.model.schema.data import SchemaData
from pulsarium.broker.model.schema.registry import SchemaRegistry
from pulsarium.broker.model.topic.base import Topic
from pulsarium.broker.model.topic.persistent import PersistentTopic
from pulsarium.broker.net.slices import work_for_a_slice
from pulsarium.proto import batch
from pulsarium.proto.avro import AvroCodec
from pulsarium.proto.compression import AT_ONCE, decompress
from pulsarium.proto.entry import build, parse_metadata, payload_of
from pulsarium.proto.errors import AvroError, ProtocolError
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.special_names import change_events_of
from pulsarium.proto.topic_name import TopicName

log = PartLog("topic_policies")

Json = dict[str, Any]
# metadata with the key of a message, and whether the message has a value
Single = pb.SingleMessageMetadata | pb.MessageMetadata

UPDATE: Final = "UPDATE"
MOST_EVENTS: Final = 1000  # in a batch; more come in several
MOST_SCHEMA: Final = 1 << 18  # bytes of the schema of a client's events, which is parsed at once
SCHEMA: Final = SchemaData.of("AVRO", EVENT_SCHEMA, EVENT_PROPERTIES)


class ChangeEventsTopic(PersistentTopic):
    """A topic that reports each entry of a client once it is stored."""

    received: Callable[[bytes], None] = staticmethod(lambda entry: None)
    append_run = None

    def append(self, pending: PendingPublish) -> Position:
        entry = pending.entry
        position = super().append(pending)
        if not isinstance(pending.publication, Unwatched):  # the broker's own events
            self.stores.turn.after_commit(partial(self._kept, entry))
        return position

    def _kept(self, entry: bytes, error: Exception | None) -> None:
        if error is None:
            self.received(entry)


def _ignored(topic: PersistentTopic, error: ProtocolError) -> None:
    log.warning("ignored an entry that is no policy event", topic=topic.name, reason=str(error))


class ChangeEvents:
    """The policy events of a cluster: publishes those of REST, and applies those of clients."""

    def __init__(
        self,
        exists: Callable[[TopicName], bool],
        create: Callable[[TopicName], Topic],
        metadata: Metadata,
        schemas: SchemaRegistry,
    ) -> None:
        """Publish to topics of `create`, which returns one that exists, too."""
        self._exists = exists
        self._create = create
        self._metadata = metadata
        self._schemas = schemas
        self._sequence = 0
        # events of clients that are not applied yet
        self._left: deque[tuple[PersistentTopic, Callable[[], None]]] = deque()

    # changes by REST are published

    def changed(self, name: TopicName, before: Json, after: Json | None) -> None:
        """Publish the changed policies of a topic. After None, they went with the deleted topic."""
        for is_global, part in ((False, local_of), (True, global_of)):
            was, now = part(before), part(after or {})
            if after is None and was:
                self._append(name, None, is_global=is_global)
            elif was != now:
                event = PolicyEvent(name, UPDATE, is_global, now)
                self._append(name, encode(event, self._metadata.cluster), is_global=is_global)

    def _append(self, name: TopicName, payload: bytes | None, *, is_global: bool) -> None:
        events = change_events_of(str(name.namespace_name))
        if payload is None and not self._exists(events):
            return  # such as while the namespace is being deleted
        try:
            topic = self._create(events)
            assert isinstance(topic, ChangeEventsTopic)
            entry = build(self._about(topic, key_of(name, is_global=is_global), payload), payload or b"")
            topic.append(PendingPublish(Unwatched(), entry, self._sequence))
        except BrokerServiceError as error:  # such as a terminated topic
            log.warning("a policy event could not be published", topic=name, reason=error.text)
            return
        self._sequence += 1
        topic.messages_in += 1
        topic.bytes_in += len(entry)

    def _about(self, topic: PersistentTopic, key: str, payload: bytes | None) -> pb.MessageMetadata:
        cluster = self._metadata.cluster
        metadata = pb.MessageMetadata(
            producer_name=cluster,
            sequence_id=self._sequence,
            publish_time=topic.now_ms(),
            partition_key=key,
            replicate_to=() if topic_of_key(key)[1] else (cluster,),
            uncompressed_size=len(payload or b""),
            schema_version=self._version(topic),
        )
        if payload is None:
            metadata.null_value = True
        return metadata

    def _version(self, topic: PersistentTopic) -> bytes:
        schemas, name = self._schemas, topic.name
        known = schemas.find_exact(name, SCHEMA) or schemas.add(name, SCHEMA, ALWAYS, topic.now_ms())
        return known.version_bytes

    # changes that clients publish take effect

    def watch(self, topic: ChangeEventsTopic) -> None:
        """Apply the events that clients publish to `topic`."""
        topic.received = partial(self._received, topic)

    def _received(self, topic: PersistentTopic, entry: bytes) -> None:
        try:
            metadata = parse_metadata(entry)
            if metadata.encryption_keys or metadata.HasField("chunk_id"):
                return
            stored = payload_of(entry)
            payload = decompress(metadata.compression, stored, metadata.uncompressed_size, limit=AT_ONCE)
            if metadata.HasField("num_messages_in_batch"):
                count = metadata.num_messages_in_batch
                singles: list[tuple[Single, bytes]] = [*batch.unpack(payload, count, MOST_EVENTS)]
            else:
                singles = [(metadata, payload)]
            codec = cache(partial(self._codec, topic, metadata.schema_version))  # parsed once, where an event needs it
        except ProtocolError as error:
            _ignored(topic, error)
            return
        at_work = bool(self._left)
        self._left.extend((topic, partial(self._apply_change, topic, about, value, codec)) for about, value in singles)
        if not at_work:
            self._go_on()

    def _go_on(self) -> None:
        """Apply events until a slice is over, and the rest in later turns."""
        try:
            work_for_a_slice(self._steps())
        finally:
            if self._left:
                self._left[0][0].stores.clock.machine.call_later(0, self._go_on)

    def _steps(self) -> Iterator[None]:
        while self._left:
            topic, apply = self._left[0]
            try:
                apply()
            except ProtocolError as error:
                _ignored(topic, error)
            finally:
                self._left.popleft()
            yield

    def _apply_change(
        self, topic: PersistentTopic, about: Single, value: bytes, codec: Callable[[], AvroCodec]
    ) -> None:
        if about.null_value or not value:
            self._forget(topic, *topic_of_key(about.partition_key))
            return
        event = decode(value, self._metadata.cluster, codec())
        if event is None or event.topic.namespace_name != topic.name.namespace_name:
            return
        kept = self._metadata.topic_policies.get(str(event.topic), {})
        known = (global_of if event.is_global else local_of)(kept)
        if event.action == UPDATE or (event.action == "INSERT" and not known):
            self._metadata.take_topic_policies(event.topic, with_part(kept, event.policies, is_global=event.is_global))
        elif event.action == "DELETE":
            self._forget(topic, event.topic, event.is_global)
            self._append(event.topic, None, is_global=event.is_global)

    def _forget(self, topic: PersistentTopic, name: TopicName, is_global: bool) -> None:
        kept = self._metadata.topic_policies.get(str(name))
        if kept is not None and name.namespace_name == topic.name.namespace_name:
            self._metadata.take_topic_policies(name, with_part(kept, {}, is_global=is_global))

    def _codec(self, topic: PersistentTopic, version: bytes) -> AvroCodec:
        """Return the codec of the schema that wrote an event, because other versions of Pulsar have other fields."""
        stored = self._schemas.get(topic.name, int.from_bytes(version, "big")) if version else None
        if stored is None or stored.data == EVENT_SCHEMA:
            return EVENT_CODEC
        if len(stored.data) > MOST_SCHEMA:
            raise AvroError(f"the stored version has {len(stored.data)} bytes, more than {MOST_SCHEMA}")
        try:
            return AvroCodec(json.loads(stored.data))
        except (ValueError, RecursionError) as error:
            raise AvroError(f"the stored version is no Avro schema: {error!r}") from None
