"""Make schemas from the definitions that brokers store."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from pulsarium.client.connection.brokers import Brokers
from pulsarium.client.errors import InvalidMessage, TopicNotFound
from pulsarium.client.schema import primitives
from pulsarium.client.schema.avro_schema import AvroSchema
from pulsarium.client.schema.key_value import KeyValueSchema, encoding_of, halves
from pulsarium.client.schema.protobuf_native import ProtobufNativeSchema, message_of
from pulsarium.client.schema.schema import BytesSchema, Schema, SchemaInfo
from pulsarium.client.schema.structured import JsonSchema, read_definition
from pulsarium.client.schema.versions import fetch
from pulsarium.proto.generated import PulsarApi_pb2 as pb


def schema_of(info: SchemaInfo) -> Schema[Any]:
    """Return a schema that encodes and decodes values by a broker's definition.

    Records are dicts. Protobuf messages are instances of a class that is made from the definition.

    Args:
        info: The definition, such as `Client.get_schema` returns it.

    Raises:
        InvalidMessage: The definition cannot be used, or the client does not support its type.
        InvalidConfiguration: A library that the schema needs is not installed.
    """
    make = _MAKE.get(info.type)
    if make is None:
        raise InvalidMessage(f"the client does not support schemas of type {info.type}")
    return make(info)


def _key_value(info: SchemaInfo) -> Schema[Any]:
    key, value = halves(info)
    return KeyValueSchema(schema_of(key), schema_of(value), encoding_of(info))


_MAKE: Mapping[int, Callable[[SchemaInfo], Schema[Any]]] = MappingProxyType(
    {
        pb.Schema.Type.Value("None"): lambda info: BytesSchema(),
        pb.Schema.String: lambda info: primitives.StringSchema(),
        pb.Schema.Bool: lambda info: primitives.BooleanSchema(),
        pb.Schema.Int8: lambda info: primitives.Int8Schema(),
        pb.Schema.Int16: lambda info: primitives.Int16Schema(),
        pb.Schema.Int32: lambda info: primitives.Int32Schema(),
        pb.Schema.Int64: lambda info: primitives.Int64Schema(),
        pb.Schema.Float: lambda info: primitives.FloatSchema(),
        pb.Schema.Double: lambda info: primitives.DoubleSchema(),
        pb.Schema.Date: lambda info: primitives.DateSchema(),
        pb.Schema.Time: lambda info: primitives.TimeSchema(),
        pb.Schema.Timestamp: lambda info: primitives.TimestampSchema(),
        pb.Schema.Instant: lambda info: primitives.InstantSchema(),
        pb.Schema.LocalDate: lambda info: primitives.LocalDateSchema(),
        pb.Schema.LocalTime: lambda info: primitives.LocalTimeSchema(),
        pb.Schema.LocalDateTime: lambda info: primitives.LocalDateTimeSchema(),
        pb.Schema.Json: lambda info: JsonSchema(read_definition(info.data)),
        pb.Schema.Avro: lambda info: AvroSchema(read_definition(info.data)),
        pb.Schema.KeyValue: _key_value,
        pb.Schema.ProtobufNative: lambda info: ProtobufNativeSchema(message_of(info)),
    }
)


class AutoProduceBytesSchema(BytesSchema):
    """A schema for producers that forward encoded messages.

    Each message is checked against the latest schema that the topic has when the producer opens, and is sent with the
    version of that schema. A topic without a schema takes any bytes. Opening a producer raises `InvalidMessage` when
    the client does not support the topic's schema.
    """

    async def on(self, brokers: Brokers, topic: str) -> Schema[Any]:
        """Return the schema by which a producer on this topic (a full name) checks its messages."""
        try:
            info = await brokers.patiently(lambda: fetch(brokers, topic))
        except TopicNotFound:
            return BytesSchema()
        return _Checked(info)


class _Checked(BytesSchema):
    def __init__(self, info: SchemaInfo) -> None:
        self.info = info
        self._schema = schema_of(info)

    def encode(self, value: bytes) -> bytes:
        data = super().encode(value)
        self._schema.decode(data)
        return data
