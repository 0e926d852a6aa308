"""The schema registry: keeps and returns. Compatibility is not judged yet."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pulsarium.broker.model.namespace.metadata import Keeps
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.topic_name import TopicName

SCHEMAS = "/schemas/"
NO_VERSION = b""


@dataclass(frozen=True, slots=True)
class StoredSchema:
    """One version of a topic's schema, as the client sent it."""

    version: int
    type: int
    data: bytes
    properties: tuple[tuple[str, str], ...]
    timestamp_ms: int

    @property
    def version_bytes(self) -> bytes:
        """The version as clients see it: 8 bytes, big-endian."""
        return self.version.to_bytes(8, "big")

    def to_proto(self, topic: TopicName) -> pb.Schema:
        """As GET_SCHEMA_RESPONSE carries it, named after the topic."""
        schema = pb.Schema(name=topic.schema_name, schema_data=self.data)
        schema.type = self.type  # type: ignore[assignment]
        for key, value in self.properties:
            schema.properties.add(key=key, value=value)
        return schema


class SchemaRegistry:
    """The versions of each topic's schema; partitions share their parent's."""

    def __init__(self, keeps: Keeps) -> None:
        self._versions: dict[str, list[StoredSchema]] = {}
        self._keeps = keeps

    def recover(self, kept: dict[str, bytes]) -> None:
        """Take over what the store has, and nothing else."""
        self._versions.clear()
        for path in sorted(path for path in kept if path.startswith(SCHEMAS)):
            topic, _, version = path[len(SCHEMAS) :].rpartition("/")
            schema = pb.Schema.FromString(kept[path])
            self._versions.setdefault(topic, []).append(
                StoredSchema(
                    int(version),
                    schema.type,
                    schema.schema_data,
                    tuple(pair for pair in _properties(schema) if pair[0] != TIMESTAMP),
                    int(dict(_properties(schema)).get(TIMESTAMP, 0)),
                )
            )

    def latest(self, topic: TopicName) -> StoredSchema | None:
        versions = self._versions.get(self._id(topic))
        return versions[-1] if versions else None

    def get(self, topic: TopicName, version: int) -> StoredSchema | None:
        versions = self._versions.get(self._id(topic), [])
        return versions[version] if 0 <= version < len(versions) else None

    def get_or_create(self, topic: TopicName, schema: pb.Schema, now_ms: int) -> bytes:
        """The version of a schema, added when it is new; empty for the type that says "no schema"."""
        if schema.type == pb.Schema.Type.Value("None"):
            return NO_VERSION
        versions = self._versions.setdefault(self._id(topic), [])
        for known in versions:
            if known.type == schema.type and known.data == schema.schema_data:
                return known.version_bytes
        added = StoredSchema(len(versions), schema.type, schema.schema_data, _properties(schema), now_ms)
        versions.append(added)
        kept = added.to_proto(topic)
        kept.properties.add(key=TIMESTAMP, value=str(now_ms))
        self._keeps.store(self._path(topic, added.version), kept.SerializeToString())
        return added.version_bytes

    def delete(self, topic: TopicName) -> None:
        for schema in self._versions.pop(self._id(topic), []):
            self._keeps.store(self._path(topic, schema.version), None)

    @staticmethod
    def _id(topic: TopicName) -> str:
        return topic.schema_name

    def _path(self, topic: TopicName, version: int) -> str:
        return f"{SCHEMAS}{self._id(topic)}/{version:020d}"


TIMESTAMP = "__pulsarium_timestamp"


def _properties(schema: pb.Schema) -> tuple[tuple[str, str], ...]:
    pairs: Iterable[Any] = schema.properties  # Schema.Type.KeyValue hides the message KeyValue from the type checker
    return tuple((pair.key, pair.value) for pair in pairs)
