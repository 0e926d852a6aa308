"""Validate schemas as Pulsar's validators do for each type."""

from __future__ import annotations

import base64
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool
from google.protobuf.message import DecodeError

from pulsarium.broker.jackson.errors import JsonError
from pulsarium.broker.jackson.parsing import parse
from pulsarium.broker.model.schema.data import AVRO_TYPES, CLIENT_SIDE, InvalidSchemaDataError, SchemaData, split
from pulsarium.broker.model.schema.definition import DefinitionError

CAUSE = "org.apache.pulsar.client.api.SchemaSerializationException: "
NULL = "java.lang.NullPointerException: Cannot"
PROTOBUF = "com.google.protobuf"
NO_SET = f'{NULL} read the array length because "data" is null'
NO_ROOT = f'{NULL} invoke "{PROTOBUF}.Descriptors$Descriptor.getFullName()" because "descriptor" is null'
NO_FILE = (
    f'{NULL} invoke "{PROTOBUF}.DescriptorProtos$FileDescriptorProto.getDependencyList()" because'
    ' "fileDescriptorProto" is null'
)
NO_SETS = f"{PROTOBUF}.InvalidProtocolBufferException: Protocol message contained an invalid tag (zero)."


def root_name(data: bytes) -> str:
    """Return the full name of the message of a PROTOBUF_NATIVE schema.

    Raise `InvalidSchemaDataError` when it has none.
    """
    sent = _json(data)
    packed = sent.get("fileDescriptorSet")
    if packed is None:
        raise _broken(NO_SET)
    try:
        files = descriptor_pb2.FileDescriptorSet.FromString(base64.b64decode(packed, validate=True))
    except (ValueError, TypeError, DecodeError):
        raise _broken(NO_SETS) from None
    try:
        pool = _pool({each.name: each for each in files.file}, sent.get("rootFileDescriptorName"))
    except KeyError:
        raise _broken(NO_FILE) from None
    except (ValueError, TypeError, RecursionError) as error:
        raise _broken(f"{PROTOBUF}.Descriptors$DescriptorValidationException: {error}") from None
    try:
        return str(pool.FindMessageTypeByName(str(sent.get("rootMessageTypeName"))).full_name)
    except KeyError:
        raise _broken(NO_ROOT) from None


def _json(data: bytes) -> dict[str, Any]:
    try:
        sent = parse(data.decode(errors="replace"))
    except JsonError as error:
        raise _broken(f"{error.java_class}: {error}") from None
    if not isinstance(sent, dict):
        raise _broken("com.fasterxml.jackson.databind.exc.MismatchedInputException: no object")
    return sent


def _pool(files: dict[str, descriptor_pb2.FileDescriptorProto], root: Any) -> descriptor_pool.DescriptorPool:
    """Return a pool of the root file and all files it needs. Each file is added after its dependencies."""
    pool = descriptor_pool.DescriptorPool()
    added: set[str] = set()

    def add(name: str) -> None:
        if name in added:
            return
        added.add(name)
        for needed in files[name].dependency:
            add(needed)
        pool.AddSerializedFile(files[name].SerializeToString())

    add(root)
    return pool


def _broken(cause: str) -> InvalidSchemaDataError:
    return InvalidSchemaDataError("deserialize ProtobufNative Schema failed", CAUSE + cause)


UNSEEN = frozenset({"NONE", "BYTES", "EXTERNAL"})
OF_PYTHON = b"null"  # the definition that Python's client sends for a string


def validate(schema: SchemaData) -> None:
    """Raise `InvalidSchemaDataError` when a schema is invalid for its type."""
    if schema.type in AVRO_TYPES:
        _validate_avro(schema)
    elif schema.type == "PROTOBUF_NATIVE":
        root_name(schema.data)
    elif schema.type in CLIENT_SIDE:
        raise InvalidSchemaDataError(f"Schema {schema.type} is a client-side schema type")
    elif schema.type == "KEY_VALUE":
        for part in split(schema):
            validate(part)
    elif schema.type == "STRING":
        if schema.data not in (b"", OF_PYTHON):
            text = schema.data.decode(errors="replace")
            raise InvalidSchemaDataError(f"Invalid schema definition data for string schema : '{text}'")
    elif schema.type not in UNSEEN and schema.data:
        found = f"length of schema data should be zero, but {len(schema.data)} bytes is found"
        raise InvalidSchemaDataError(f"Invalid schema definition data for primitive schemas :{found}")


def _validate_avro(schema: SchemaData) -> None:
    try:
        definition = schema.definition()
    except DefinitionError as error:
        raise InvalidSchemaDataError(f"Invalid schema definition data for {schema.type} schema", str(error)) from None
    if schema.type == "AVRO" and definition.type == "union":
        raise InvalidSchemaDataError("Avro schema typed [UNION] is not supported")
