"""Calls about schemas of topics."""

from __future__ import annotations

from typing import Any, cast

from pulsarium.rest.data import Compatibility, PostSchema, SchemaInfo
from pulsarium.rest.group import CallGroup, Topic


class Schemas(CallGroup):
    """Calls of `schemas`."""

    async def get_schema_info(self, topic: Topic, version: int | None = None) -> SchemaInfo:
        """Return the newest schema of a topic, or the one of a version."""
        end = "" if version is None else f"/{version}"
        return await self._get(SchemaInfo, f"{self._path(topic)}/schema{end}")

    async def get_all_schemas(self, topic: Topic) -> list[SchemaInfo]:
        """Return the schemas of all versions, in order."""
        found = await self._get(dict[str, list[SchemaInfo]], f"{self._path(topic)}/schemas")
        return found["getSchemaResponses"]

    async def create_schema(self, topic: Topic, schema: PostSchema) -> dict[str, Any] | None:
        """Register a schema, and return its version. The broker refuses it if the topic's strategy does."""
        return cast("dict[str, Any] | None", await self._post(f"{self._path(topic)}/schema", schema))

    async def delete_schema(self, topic: Topic, *, force: bool = False) -> None:
        """Mark the schema of a topic as deleted. With `force`, delete all versions for good."""
        await self._delete(f"{self._path(topic)}/schema", {"force": force})

    async def get_schema_metadata(self, topic: Topic) -> dict[str, Any]:
        """Return the positions at which the versions are stored."""
        return await self._get(dict[str, Any], f"{self._path(topic)}/metadata")

    async def test_compatibility(self, topic: Topic, schema: PostSchema) -> Compatibility:
        """Return whether the broker would accept the schema."""
        return cast(Compatibility, await self._post(f"{self._path(topic)}/compatibility", schema))

    def _path(self, topic: Topic) -> str:
        name = self._name(topic)
        return f"schemas/{name.namespace_name}/{name.encoded_local_name}"
