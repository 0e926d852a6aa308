"""The schema registry: the versions of each topic's schema, and the checks of new ones (SchemaRegistryServiceImpl)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from pulsarium.broker.model.errors import BrokerServiceError
from pulsarium.broker.model.namespace.metadata import Keeps
from pulsarium.broker.model.schema.compatibility import ALWAYS, check, is_transitive
from pulsarium.broker.model.schema.data import AVRO_TYPES, NoSchemaError, SchemaData, SchemaError, encoded
from pulsarium.broker.model.schema.definition import DefinitionError
from pulsarium.broker.model.schema.validation import validate
from pulsarium.broker.storage.interface import Done
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.topic_name import TopicName

T = TypeVar("T")

SCHEMAS = "/schemas/"
LARGE = 1 << 14  # bytes of definitions and properties
NO_VERSION = b""
NOTHING = SchemaData("NONE")

# properties of a stored schema that clients do not see
TIMESTAMP = "__pulsarium_timestamp"
LEDGER = "__pulsarium_ledger"
DELETED = "__pulsarium_deleted"
OURS = (TIMESTAMP, LEDGER, DELETED)


@dataclass(frozen=True, slots=True)
class StoredSchema:
    """A version of a topic's schema, or the mark of a deletion."""

    version: int
    schema: SchemaData
    timestamp_ms: int
    ledger_id: int  # the ledger of its own that Pulsar stores the schema in
    deleted: bool

    @property
    def data(self) -> bytes:
        return self.schema.data

    @property
    def version_bytes(self) -> bytes:
        """Return the version as clients see it: 8 bytes, big-endian."""
        return self.version.to_bytes(8, "big")

    def kept(self, topic: TopicName) -> bytes:
        bare = replace(self.schema, encoded_properties=b"").to_proto(topic.schema_name).SerializeToString()
        ours = encoded(zip(OURS, map(str, (self.timestamp_ms, self.ledger_id, int(self.deleted))), strict=True))
        return bare + self.schema.encoded_properties + ours  # protobuf merges concatenated messages

    @classmethod
    def read(cls, version: int, kept: bytes) -> StoredSchema:
        schema = pb.Schema.FromString(kept)
        pairs: Any = schema.properties  # Schema.Type.KeyValue hides the message from the type checker
        timestamp, ledger, deleted = (int(pair.value) for pair in pairs[-len(OURS) :])
        del schema.properties[-len(OURS) :]
        return cls(version, SchemaData.taken_from(schema), timestamp, ledger, bool(deleted))


Question = tuple[Callable[..., Any], tuple[Hashable, ...]]
Answers = dict[Question, tuple[Any, SchemaError | None]]
"""Answers to questions about schemas, or refusals, by the question."""


class _Nowhere:
    """A store for rehearsals, which keeps nothing."""

    def store(self, path: str, value: bytes | None) -> None: ...

    def after_commit(self, done: Done) -> None: ...


class SchemaRegistry:
    """The versions of each topic's schema. Partitions share the schema of their topic.

    A large schema is judged by a thread first (`rehearsal`), which finds the answers to all questions about it. The
    registry then does the same again on the event loop, and `knows` the answers.
    """

    def __init__(self, keeps: Keeps, next_ledger_id: Callable[[], int] = lambda: -1) -> None:
        self._versions: dict[str, list[StoredSchema]] = {}
        self._keeps = keeps
        self._next_ledger_id = next_ledger_id
        self._answers: Answers | None = None
        self.listeners: list[Callable[[TopicName, StoredSchema], None]] = []
        """Called with each new version, and with each mark of a deletion."""

    # large schemas

    def is_large(self, topic: TopicName, size: int) -> bool:
        """Return whether judging a schema of `size` bytes may take more than a slice of the event loop."""
        return size + sum(each.schema.size for each in self.versions(topic)) > LARGE

    def rehearsal(self, topic: TopicName, act: Callable[[SchemaRegistry], object]) -> Callable[[], Answers]:
        """Return a function for a thread, which does `act` with a copy and returns the answers that `act` needs."""
        copy = SchemaRegistry(_Nowhere())
        copy._versions[topic.schema_name] = [*self.all(topic)]
        answers = copy._answers = {}

        def rehearse() -> Answers:
            with suppress(BrokerServiceError):
                act(copy)
            return answers

        return rehearse

    @contextmanager
    def knows(self, answers: Answers) -> Iterator[None]:
        """Use the answers of a rehearsal."""
        self._answers = answers
        try:
            yield
        finally:
            self._answers = None

    def _ask(self, question: Callable[..., T], *about: Hashable) -> T:
        answers = self._answers
        if answers is None:
            return question(*about)
        if (question, about) not in answers:
            try:
                answers[question, about] = question(*about), None
            except SchemaError as error:
                answers[question, about] = None, error
        answer, refusal = answers[question, about]
        if refusal is not None:
            raise refusal
        known: T = answer
        return known

    def recover(self, kept: dict[str, bytes]) -> None:
        """Replace all versions by those that the store has."""
        self._versions.clear()
        for path in sorted(path for path in kept if path.startswith(SCHEMAS)):
            topic, _, version = path[len(SCHEMAS) :].rpartition("/")
            self._versions.setdefault(topic, []).append(StoredSchema.read(int(version), kept[path]))

    # reading

    def all(self, topic: TopicName) -> list[StoredSchema]:
        """Return all versions ever made, with the marks of deletions."""
        return self._versions.get(topic.schema_name, [])

    def versions(self, topic: TopicName) -> list[StoredSchema]:
        """Return the versions since the last deletion."""
        versions = self.all(topic)
        last = next((each.version for each in reversed(versions) if each.deleted), -1)
        return versions[last + 1 :]

    def latest(self, topic: TopicName) -> StoredSchema | None:
        versions = self.all(topic)
        return versions[-1] if versions and not versions[-1].deleted else None

    def get(self, topic: TopicName, version: int) -> StoredSchema | None:
        return next((each for each in self.versions(topic) if each.version == version), None)

    def find(self, topic: TopicName, schema: SchemaData) -> StoredSchema | None:
        """Return the version with an equal definition, or None."""
        exact = self.find_exact(topic, schema)
        if exact is not None or schema.type not in AVRO_TYPES:
            return exact
        versions = self.versions(topic)
        index = self._ask(_equal, tuple(each.schema for each in versions), schema)
        return None if index is None else versions[index]

    def find_exact(self, topic: TopicName, schema: SchemaData) -> StoredSchema | None:
        """Return the version with the same bytes of definition, or None."""
        return next(
            (
                each
                for each in self.versions(topic)
                if (each.schema.type, each.schema.data) == (schema.type, schema.data)
            ),
            None,
        )

    # adding

    def add(self, topic: TopicName, schema: SchemaData, strategy: str, now_ms: int) -> StoredSchema:
        """Return the version of a schema, added if it is new and fits the others.

        Raise `SchemaError` when it is refused.
        """
        self._ask(validate, schema)
        known = self.find(topic, schema)
        if known is not None:
            return known
        self.check(topic, schema, strategy)
        return self._append(topic, schema, now_ms)

    def examine(self, topic: TopicName, schema: SchemaData, strategy: str) -> None:
        """Raise `SchemaError` for a schema that is invalid, or does not fit the existing versions."""
        self._ask(validate, schema)
        self.check(topic, schema, strategy)

    def check(self, topic: TopicName, schema: SchemaData, strategy: str) -> None:
        """Raise `IncompatibleSchemaError` unless a schema fits the existing versions."""
        versions = [each.schema for each in self.versions(topic)]
        if is_transitive(strategy):
            self._ask(check, tuple(versions), schema, strategy)
        elif versions and (versions[-1].type, versions[-1].data) != (schema.type, schema.data):
            self._ask(check, tuple(versions[-1:]), schema, strategy)

    def check_consumer(self, topic: TopicName, schema: SchemaData, strategy: str) -> None:
        """Raise `SchemaError` unless a consumer with this schema can read the newest version.

        BACKWARD_TRANSITIVE, FULL_TRANSITIVE and ALWAYS_INCOMPATIBLE compare all versions.
        """
        if strategy == ALWAYS:
            return
        versions = [each.schema for each in self.versions(topic)]
        if not versions:
            raise NoSchemaError
        if strategy in ("BACKWARD", "FORWARD", "FORWARD_TRANSITIVE", "FULL"):
            self.check(topic, schema, "BACKWARD")
        else:  # BACKWARD_TRANSITIVE, FULL_TRANSITIVE, ALWAYS_INCOMPATIBLE: all versions, as for a producer
            self._ask(check, tuple(versions), schema, strategy)

    def get_or_create(self, topic: TopicName, schema: SchemaData, now_ms: int) -> bytes:
        """Return the version of a schema, added without a check if it is new. Return b"" for the type NONE."""
        if schema.type == "NONE":
            return NO_VERSION
        return (self.find(topic, schema) or self._append(topic, schema, now_ms)).version_bytes

    def mark_deleted(self, topic: TopicName, now_ms: int) -> StoredSchema:
        """Mark the schema as deleted. Later versions continue the count."""
        return self._append(topic, NOTHING, now_ms, deleted=True)

    def delete(self, topic: TopicName) -> None:
        """Delete all versions, and the marks of deletions. A failed commit restores them."""
        versions = self._versions.pop(topic.schema_name, None)
        if versions is None:
            return

        def deleted(error: Exception | None) -> None:
            if error is not None:
                self._versions[topic.schema_name] = versions

        for schema in versions:
            self._keeps.store(self._path(topic, schema.version), None)
        self._keeps.after_commit(deleted)

    def _append(self, topic: TopicName, schema: SchemaData, now_ms: int, *, deleted: bool = False) -> StoredSchema:
        if schema.type == "BYTES":
            schema = replace(schema, type="NONE")  # as Pulsar reads it back
        versions = self._versions.setdefault(topic.schema_name, [])
        added = StoredSchema(len(versions), schema, now_ms, self._next_ledger_id(), deleted)
        versions.append(added)
        self._keeps.store(self._path(topic, added.version), added.kept(topic))
        for told in self.listeners:
            told(topic, added)
        return added

    def _path(self, topic: TopicName, version: int) -> str:
        return f"{SCHEMAS}{topic.schema_name}/{version:020d}"


def _equal(versions: Sequence[SchemaData], schema: SchemaData) -> int | None:
    """Return the index of the first version with an equal definition, or None."""
    with suppress(DefinitionError):
        definition = schema.definition()
        return next((i for i, each in enumerate(versions) if each.is_defined_as(schema.type, definition)), None)
    return None
