"""Schemas of the client for the schemas of the registry."""

from __future__ import annotations

from typing import Any

from pulsarium.client import AvroSchema, JsonSchema, Schema, SchemaInfo
from pulsarium.client.bulk import Form
from pulsarium.pipeline.columns.primitives import PRIMITIVES
from pulsarium.proto.generated import PulsarApi_pb2 as pb

FORMS = {pb.Schema.Avro: Form.AVRO, pb.Schema.Json: Form.JSON}


def form_of(info: SchemaInfo) -> Form:
    """Return the form of a schema's records. For a schema without records, the form has no meaning."""
    return FORMS.get(info.type, Form.AVRO)


def schema_of(info: SchemaInfo | None) -> Schema[Any] | None:
    """Return the schema of the client, or None when messages are bytes.

    A record has the registry's definition to the letter, so that a producer adds no new version.
    """
    if info is None:
        return None
    if info.type in PRIMITIVES:
        return PRIMITIVES[info.type].schema()
    definition = info.data.decode()
    return AvroSchema(definition) if info.type == pb.Schema.Avro else JsonSchema(definition)
