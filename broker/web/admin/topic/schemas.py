"""/admin/v2/schemas: schemas of topics. The topics need not exist."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from pulsarium.broker.auth.needs import TENANT_ADMIN, topic_operation
from pulsarium.broker.jackson.kinds import STRINGS, TEXT, record
from pulsarium.broker.model.schema import registry
from pulsarium.broker.model.schema.data import (
    SCHEMA_TYPES,
    IncompatibleSchemaError,
    InvalidSchemaDataError,
    MalformedSchemaError,
    SchemaData,
    SchemaError,
    joined,
    split,
)
from pulsarium.broker.model.schema.registry import Answers, SchemaRegistry, StoredSchema
from pulsarium.broker.net.slices import aside, in_a_thread
from pulsarium.broker.web.http.call import Call
from pulsarium.broker.web.http.errors import AdminError, ContainerError, unexpected_body
from pulsarium.broker.web.http.registry import route
from pulsarium.broker.web.http.reply import HttpReply, json_reply, nothing
from pulsarium.proto.topic_name import TopicName

TOPIC = "/admin/v2/schemas/{tenant}/{namespace}/{topic}"
READS = topic_operation("GET_METADATA")
PAYLOAD = record(
    "org.apache.pulsar.common.protocol.schema.PostSchemaPayload",
    {"type": TEXT, "schema": TEXT, "properties": STRINGS},
)
NO_BODY = f'Cannot invoke "{PAYLOAD.java_type}.getType()" because "payload" is null'
NO_SCHEMA = (
    'Cannot invoke "String.getBytes(java.nio.charset.Charset)" because the return value of '
    f'"{PAYLOAD.java_type}.getSchema()" is null'
)
NOT_FOUND = AdminError(404, "Schema not found")
STRUCTURED = frozenset({"AVRO", "JSON", "PROTOBUF", "PROTOBUF_NATIVE", "KEY_VALUE"})
UNKNOWN = -1


@route("GET", f"{TOPIC}/schema", needs=READS)
async def get_schema(call: Call) -> HttpReply:
    """Return the newest version of a topic's schema."""
    return await _shown(call.broker.schemas.latest(call.topic_anywhere))


@route("GET", f"{TOPIC}/schema/{{version}}", needs=READS)
async def get_version(call: Call) -> HttpReply:
    """Return one version of a topic's schema."""
    text = call.parameter("version")
    try:
        version = int(text)
    except ValueError:
        raise unexpected_body(f'For input string: "{text}"') from None
    return await _shown(call.broker.schemas.get(call.topic_anywhere, version))


@route("GET", f"{TOPIC}/schemas", needs=READS)
async def get_all_versions(call: Call) -> HttpReply:
    """Return all versions since the last deletion."""
    versions = call.broker.schemas.versions(call.topic_anywhere)
    size = sum(each.schema.size for each in versions)
    return await aside(
        lambda: json_reply({"getSchemaResponses": [_json(each) for each in versions]}), size, registry.LARGE
    )


@route("GET", f"{TOPIC}/metadata", needs=READS)
def get_metadata(call: Call) -> HttpReply:
    """Return the position of each version, which is in a ledger of its own."""
    versions = call.broker.schemas.all(call.topic_anywhere)
    if not versions:
        return nothing()
    index = [{"ledgerId": each.ledger_id, "entryId": 0, "version": each.version} for each in versions]
    return json_reply({"info": index[-1], "index": index})


@route("POST", f"{TOPIC}/schema", needs=topic_operation("PRODUCE"))
async def post_schema(call: Call) -> HttpReply:
    """Register a schema that is compatible with the topic's versions."""
    name = _in_namespace(call)
    schema, broker = await _sent(call, type_first=False), call.broker
    strategy, now_ms = broker.topics.policies_of(name).schemas.strategy, broker.clock_of(name).now_ms()
    answers = await _answers(call, name, schema, lambda copy: copy.add(name, schema, strategy, now_ms))
    try:
        with broker.schemas.knows(answers):
            added = broker.schemas.add(name, schema, strategy, now_ms)
    except IncompatibleSchemaError as error:
        raise ContainerError(409, error.text) from None
    except InvalidSchemaDataError as error:
        raise ContainerError(422, error.text) from None
    except MalformedSchemaError as error:
        raise unexpected_body(error.message) from None
    return json_reply({"version": {"version": added.version}})


@route("DELETE", f"{TOPIC}/schema", needs=TENANT_ADMIN)
def delete_schema(call: Call) -> HttpReply:
    """Mark the schema of a topic as deleted. With `force`, delete all versions."""
    name, broker = call.topic_anywhere, call.broker
    if call.flag("force"):
        broker.schemas.delete(name)
        return json_reply({"version": UNKNOWN})
    return json_reply({"version": broker.schemas.mark_deleted(name, broker.clock_of(name).now_ms()).version})


@route("POST", f"{TOPIC}/compatibility", needs=TENANT_ADMIN)
async def check_compatibility(call: Call) -> HttpReply:
    """Return whether a schema would be accepted. An incompatible schema is an error."""
    name, schema, broker = _in_namespace(call), await _sent(call), call.broker
    strategy = broker.topics.policies_of(name).schemas.strategy
    answers = await _answers(call, name, schema, lambda copy: copy.examine(name, schema, strategy))
    try:
        with broker.schemas.knows(answers):
            broker.schemas.examine(name, schema, strategy)
    except MalformedSchemaError as error:
        raise unexpected_body(error.message) from None
    except SchemaError as error:
        status = 409 if isinstance(error, IncompatibleSchemaError) else 422
        raise unexpected_body(error.text, AdminError(status, error.text)) from None
    return json_reply({"schemaCompatibilityStrategy": strategy, "compatibility": True}, 202)


@route("POST", f"{TOPIC}/version", needs=READS)
async def find_version(call: Call) -> HttpReply:
    """Return the version of an identical schema; -1 for none."""
    found = call.broker.schemas.find_exact(call.topic_anywhere, await _sent(call))
    return json_reply({"version": UNKNOWN if found is None else found.version})


async def _answers(call: Call, name: TopicName, schema: SchemaData, act: Callable[[SchemaRegistry], object]) -> Answers:
    """Return what a thread finds out about a large schema."""
    schemas = call.broker.schemas
    return await in_a_thread(schemas.rehearsal(name, act)) if schemas.is_large(name, schema.size) else {}


def _in_namespace(call: Call) -> TopicName:
    """Return the topic. Raise `AdminError` 404 when its namespace, whose policies apply, does not exist."""
    name = call.topic_anywhere
    if str(name.namespace_name) not in call.broker.metadata.namespaces:
        raise AdminError(404, "Namespace does not exist")
    return name


async def _shown(found: StoredSchema | None) -> HttpReply:
    if found is None:
        raise NOT_FOUND
    return await aside(lambda: json_reply(_json(found)), found.schema.size, registry.LARGE)


def _json(found: StoredSchema) -> dict[str, Any]:
    schema = found.schema
    return {
        "version": found.version,
        "type": schema.type,
        "timestamp": found.timestamp_ms,
        "data": _halves_shown(schema) if schema.type == "KEY_VALUE" else schema.data.decode(errors="replace"),
        "properties": schema.properties,
    }


def _halves_shown(schema: SchemaData) -> str:
    """Return key and value as one JSON. "" is the definition of a primitive type."""
    key, value = (json.loads(each.data) if each.type in STRUCTURED else "" for each in split(schema))
    return json.dumps({"key": key, "value": value}, separators=(",", ":"), ensure_ascii=False)


async def _sent(call: Call, *, type_first: bool = True) -> SchemaData:
    """Return the schema in the body. `type_first`: the type is checked before the definition."""
    return await aside(lambda: _read(call, type_first=type_first), len(call.body), registry.LARGE)


def _read(call: Call, *, type_first: bool) -> SchemaData:
    """Return the schema in the body (PostSchemaPayload)."""
    sent = call.read(PAYLOAD)
    if sent is None:
        raise unexpected_body(NO_BODY)
    kind, text, properties = sent.get("type"), sent.get("schema"), sent.get("properties", {})
    if text is None and not (type_first and kind not in SCHEMA_TYPES):
        raise unexpected_body(NO_SCHEMA)
    if kind is None:
        raise unexpected_body("Name is null")
    if kind not in SCHEMA_TYPES:
        raise unexpected_body(f"No enum constant org.apache.pulsar.common.schema.SchemaType.{kind}")
    assert text is not None
    data = _halves_read(text) if kind == "KEY_VALUE" else text.encode(errors="replace")
    return SchemaData.of(kind, data, properties)


def _halves_read(text: str) -> bytes:
    """Return the stored form of key and value in one JSON."""
    try:
        sent = json.loads(text)
    except (ValueError, RecursionError):
        sent = None
    if not isinstance(sent, dict):
        where = "are in unnamed module of loader 'app'"
        primitive, whole = "com.google.gson.JsonPrimitive", "com.google.gson.JsonObject"
        raise unexpected_body(f"class {primitive} cannot be cast to class {whole} ({primitive} and {whole} {where})")
    halves = []
    for what in ("key", "value"):
        if what not in sent:
            raise unexpected_body(
                'Cannot invoke "com.google.gson.JsonElement.toString()" because "jsonElement" is null'
            )
        half = sent[what]
        halves.append(b"" if half == "" else json.dumps(half, separators=(",", ":"), ensure_ascii=False).encode())
    return joined(*halves)
