"""Schemas of topics."""

from __future__ import annotations

from typing import Any, cast

from pulsarium.rest.data import Compatibility, PostSchema, SchemaInfo
from pulsarium.rest.group import Group, Topic


class Schemas(Group):
    """`schemas`."""

    async def get_schema_info(self, topic: Topic, version: int | None = None) -> SchemaInfo:
        """The newest, or one version."""
        end = "" if version is None else f"/{version}"
        return await self._get(SchemaInfo, f"{self._path(topic)}/schema{end}")

    async def get_all_schemas(self, topic: Topic) -> list[SchemaInfo]:
        """Every version, in order."""
        found = await self._get(dict[str, list[SchemaInfo]], f"{self._path(topic)}/schemas")
        return found["getSchemaResponses"]

    async def create_schema(self, topic: Topic, schema: PostSchema) -> dict[str, Any] | None:
        """A new version, if the topic's strategy accepts it; says which."""
        return cast("dict[str, Any] | None", await self._post(f"{self._path(topic)}/schema", schema))

    async def delete_schema(self, topic: Topic, *, force: bool = False) -> None:
        """`force`: all versions, beyond recall."""
        await self._delete(f"{self._path(topic)}/schema", {"force": force})

    async def get_schema_metadata(self, topic: Topic) -> dict[str, Any]:
        """Where the versions are kept."""
        return await self._get(dict[str, Any], f"{self._path(topic)}/metadata")

    async def test_compatibility(self, topic: Topic, schema: PostSchema) -> Compatibility:
        """Whether it would be accepted."""
        return cast(Compatibility, await self._post(f"{self._path(topic)}/compatibility", schema))

    def _path(self, topic: Topic) -> str:
        name = self._name(topic)
        return f"schemas/{name.namespace_name}/{name.encoded_local_name}"
