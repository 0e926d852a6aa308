"""`pulsarium admin schemas`."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from pulsarium.cli.admin.api import Api
from pulsarium.cli.admin.command import AdminCommand, CommandGroup, CommandsOf, Values, argument, option
from pulsarium.cli.admin.errors import AdminError
from pulsarium.cli.admin.output import gson, jackson, silent
from pulsarium.cli.admin.values import LONG, TOPIC
from pulsarium.proto.topic_name import TopicName
from pulsarium.rest.data import SchemaInfo
from pulsarium.rest.schemas import Schemas

TOPIC_ARGUMENT = argument("topic", TOPIC)
of_topic = CommandsOf(Schemas, TOPIC_ARGUMENT)
FILENAME = option(
    "--filename", "-f", required=True, type=click.Path(path_type=Path), help="A JSON file with the schema."
)


def _info(topic: TopicName, answer: SchemaInfo) -> dict[str, Any]:
    """Return a SchemaInfo as pulsar-admin shows it: with the definition of a structured schema as JSON."""
    schema: Any = answer.get("data", "")
    if answer.get("type") in ("JSON", "AVRO", "PROTOBUF", "PROTOBUF_NATIVE", "KEY_VALUE"):
        with suppress(ValueError):
            schema = json.loads(schema)
    return {
        "name": topic.local_name,
        "schema": schema,
        "type": answer.get("type"),
        "timestamp": answer.get("timestamp", 0),
        "properties": dict(sorted((answer.get("properties") or {}).items())),
    }


async def _get(api: Api, values: Values) -> Any:
    if values.all_version:
        return [_info(values.topic, answer) for answer in await Schemas(api).get_all_schemas(values.topic)]
    answer = await Schemas(api).get_schema_info(values.topic, values.version)
    if values.version is not None:
        return _info(values.topic, answer)
    return {"version": answer.get("version"), "schemaInfo": _info(values.topic, answer)}


def _show(data: Any, values: Values) -> str:
    if not values.all_version:
        return gson(data)
    return "\n".join(
        jackson({**info, "schema": (text := _text(info["schema"])), "schemaDefinition": text}) for info in data
    )


def _text(schema: Any) -> str:
    return schema if isinstance(schema, str) else json.dumps(schema, separators=(",", ":"))


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text())
    except OSError as error:
        raise AdminError(f"Schema file {path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise AdminError(f"Schema file {path} is not JSON: {error}") from None


async def _upload(api: Api, values: Values) -> None:
    given = _read(values.filename)
    given = given.get("schemaInfo", given)  # the output of `get`
    schema: Any = {name: given[name] for name in ("type", "schema", "properties") if name in given}
    if "schema" in schema:
        schema["schema"] = _text(schema["schema"])
    await Schemas(api).create_schema(values.topic, schema)


async def _compatibility(api: Api, values: Values) -> Any:
    return await Schemas(api).test_compatibility(values.topic, _read(values.filename))


async def _extract(api: Api, values: Values) -> None:
    raise AdminError(
        "Pulsarium cannot extract a schema from a Java class; write the schema to a file and use `schemas upload`"
    )


_ROWS = (
    AdminCommand(
        "get",
        "Show the newest, one, or all schema versions of a topic.",
        _get,
        (
            TOPIC_ARGUMENT,
            option("--version", "-v", type=LONG, help="The version."),
            option("--all-version", "-a", flag=True, help="Show all versions."),
        ),
        _show,
    ),
    of_topic.does(
        "delete",
        Schemas.delete_schema,
        "Delete the schema of a topic.",
        option("--force", "-f", flag=True, help="Delete all versions for good."),
    ),
    AdminCommand(
        "upload",
        'Upload a schema from a file: {"type": "JSON", "schema": "...", "properties": {}}, or the output of get.',
        _upload,
        (TOPIC_ARGUMENT, FILENAME),
        example="orders --filename order.json",
    ),
    AdminCommand(
        "extract",
        "Extract a schema from a Java class. Pulsarium refuses this, because it has no JVM.",
        _extract,
        (
            TOPIC_ARGUMENT,
            option("--jar", "-j", required=True, help="The jar."),
            option("--type", "-t", required=True, help="avro or json."),
            option("--classname", "-c", required=True, help="The class."),
            option("--always-allow-null", "-a", type=bool, default=True, help="Allow null in fields."),
            option("--dry-run", "-n", flag=True, help="Show the schema without an upload."),
        ),
        hidden=True,
    ),
    of_topic.shows("metadata", Schemas.get_schema_metadata, "Show the metadata of a topic's schemas."),
    AdminCommand(
        "compatibility",
        "Check whether a topic would accept a schema.",
        _compatibility,
        (TOPIC_ARGUMENT, FILENAME),
        silent,
    ),
)

GROUPS = {
    "schemas": CommandGroup(_ROWS, examples=("schemas get orders", "schemas upload orders --filename order.json"))
}
