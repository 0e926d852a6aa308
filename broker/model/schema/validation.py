"""Whether a schema is one at all: Pulsar's validators, by type."""

from __future__ import annotations

from pulsarium.broker.model.schema.data import AVRO_TYPES, CLIENT_SIDE, SchemaData
from pulsarium.broker.model.schema.definition import DefinitionError
from pulsarium.broker.model.schema.errors import InvalidSchemaDataError
from pulsarium.broker.model.schema.key_value import split
from pulsarium.broker.model.schema.protobuf_native import root_name

UNSEEN = frozenset({"NONE", "BYTES", "EXTERNAL"})
OF_PYTHON = b"null"  # what Python's client sends as the definition of a string


def validate(schema: SchemaData) -> None:
    """Raise InvalidSchemaDataError for what is no schema of its type."""
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
