"""The schema registry: the versions of each topic's schema, and the checks of new ones (SchemaRegistryServiceImpl)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

from pulsarium.broker.model.namespace.metadata import Keeps
from pulsarium.broker.model.schema.compatibility import ALWAYS, check, is_transitive
from pulsarium.broker.model.schema.data import AVRO_TYPES, NoSchemaError, SchemaData
from pulsarium.broker.model.schema.definition import DefinitionError
from pulsarium.broker.model.schema.validation import validate
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.topic_name import TopicName

SCHEMAS = "/schemas/"
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
    ledger_id: int = -1  # the ledger of its own that Pulsar stores the schema in
    deleted: bool = False

    @property
    def data(self) -> bytes:
        return self.schema.data

    @property
    def version_bytes(self) -> bytes:
        """Return the version as clients see it: 8 bytes, big-endian."""
        return self.version.to_bytes(8, "big")

    def to_proto(self, topic: TopicName) -> pb.Schema:
        """Return the schema for GET_SCHEMA_RESPONSE, named after the topic."""
        return self.schema.to_proto(topic.schema_name)

    def kept(self, topic: TopicName) -> bytes:
        schema = self.to_proto(topic)
        for key, value in zip(OURS, (self.timestamp_ms, self.ledger_id, int(self.deleted)), strict=True):
            schema.properties.add(key=key, value=str(value))
        return schema.SerializeToString()

    @classmethod
    def read(cls, version: int, kept: bytes) -> StoredSchema:
        schema = SchemaData.from_proto(pb.Schema.FromString(kept))
        timestamp, deleted = (int(schema.texts.get(key, 0)) for key in (TIMESTAMP, DELETED))
        ledger = int(schema.texts.get(LEDGER, -1))  # older versions stored none
        theirs = replace(schema, properties=tuple(pair for pair in schema.properties if pair[0] not in OURS))
        return cls(version, theirs, timestamp, ledger, bool(deleted))


class SchemaRegistry:
    """The versions of each topic's schema. Partitions share the schema of their topic."""

    def __init__(self, keeps: Keeps, next_ledger_id: Callable[[], int] = lambda: -1) -> None:
        self._versions: dict[str, list[StoredSchema]] = {}
        self._keeps = keeps
        self._next_ledger_id = next_ledger_id

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
        with suppress(DefinitionError):
            definition = schema.definition()
            return next(
                (each for each in self.versions(topic) if each.schema.is_defined_as(schema.type, definition)), None
            )
        return None

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
        validate(schema)
        known = self.find(topic, schema)
        if known is not None:
            return known
        self.check(topic, schema, strategy)
        return self._append(topic, schema, now_ms)

    def check(self, topic: TopicName, schema: SchemaData, strategy: str) -> None:
        """Raise `IncompatibleSchemaError` unless a schema fits the existing versions."""
        versions = [each.schema for each in self.versions(topic)]
        if is_transitive(strategy):
            check(versions, schema, strategy)
        elif versions and (versions[-1].type, versions[-1].data) != (schema.type, schema.data):
            check(versions[-1:], schema, strategy)

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
            check(versions, schema, strategy)

    def get_or_create(self, topic: TopicName, schema: pb.Schema, now_ms: int) -> bytes:
        """Return the version of a schema, added without a check if it is new. Return b"" for the type None."""
        if schema.type == pb.Schema.Type.Value("None"):
            return NO_VERSION
        data = SchemaData.from_proto(schema)
        return (self.find(topic, data) or self._append(topic, data, now_ms)).version_bytes

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
        return added

    def _path(self, topic: TopicName, version: int) -> str:
        return f"{SCHEMAS}{topic.schema_name}/{version:020d}"
