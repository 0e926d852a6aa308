"""The form for a message: the shape of the values that the schema of a topic accepts, and an example."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from pulsarium.broker.auth.needs import topic_operation
from pulsarium.broker.model.schema.data import SchemaData, SchemaError, split
from pulsarium.broker.net.slices import aside
from pulsarium.broker.web.console.decode import ENCODING
from pulsarium.broker.web.http.call import Call
from pulsarium.broker.web.http.errors import AdminError
from pulsarium.broker.web.http.registry import route
from pulsarium.broker.web.http.reply import HttpReply, json_reply
from pulsarium.proto.avro import NAMED, AvroCodec
from pulsarium.proto.errors import AvroError
from pulsarium.proto.json_values import MOST_SCHEMA, avro_codec, protobuf_class

MOST_SHAPES: Final = 2000  # in one form; a named type that is used often is repeated at each use
DAY_MS: Final = 86_400_000
SINGLE: Final[Mapping[str, tuple[str, str]]] = {
    "BYTES": ("bytes", ""),
    "NONE": ("bytes", ""),
    "STRING": ("string", ""),
    "BOOLEAN": ("boolean", ""),
    "INT8": ("int", ""),
    "INT16": ("int", ""),
    "INT32": ("int", ""),
    "INT64": ("long", ""),
    "FLOAT": ("float", ""),
    "DOUBLE": ("double", ""),
    "DATE": ("long", "timestamp-millis"),
    "TIME": ("long", "time-millis"),
    "TIMESTAMP": ("long", "timestamp-millis"),
    "INSTANT": ("string", "instant"),
    "LOCAL_DATE": ("long", "date"),
    "LOCAL_TIME": ("long", "time-nanos"),
    "LOCAL_DATE_TIME": ("string", "local-date-time"),
}
"""The kind and the logical type of the types that have no fields."""

Json = dict[str, Any]


@route(
    "GET",
    "/pulsarium/form/{domain}/{tenant}/{namespace}/{topic}",
    needs=topic_operation("GET_METADATA"),
    anywhere=True,
)
async def get_form(call: Call) -> HttpReply:
    """Return the shape of the values of the topic's newest schema, and an example that the schema accepts.

    A topic without a schema has the type BYTES, and no version.
    """
    stored = call.broker.schemas.latest(call.topic)
    schema = SchemaData("BYTES") if stored is None else stored.schema
    if len(schema.data) > MOST_SCHEMA:
        raise AdminError(
            409, f"The schema has {len(schema.data)} bytes, more than {MOST_SCHEMA}: no form is made of it"
        )
    now_ms = call.broker.clock_of(call.topic).now_ms()
    try:
        form = await aside(lambda: form_of(schema, now_ms), len(schema.data))
    except (ValueError, SchemaError, RecursionError) as error:
        raise AdminError(409, f"The topic's schema of type {schema.type} cannot be used: {error}") from None
    return json_reply({"type": schema.type, "version": None if stored is None else stored.version, **form})


def form_of(schema: SchemaData, now_ms: int) -> Json:
    """Return the shape of the value, of the key for pairs, and an example. Times of the example are `now_ms`."""
    if schema.type != "KEY_VALUE":
        shape = shape_of(schema)
        return {"value": shape, "example": example_of(shape, now_ms)}
    key, value = (shape_of(half) for half in split(schema))
    example = {"key": example_of(key, now_ms), "value": example_of(value, now_ms)}
    encoding = "SEPARATED" if schema.properties.get(ENCODING) == "SEPARATED" else "INLINE"
    return {"encoding": encoding, "key": key, "value": value, "example": example}


def shape_of(schema: SchemaData) -> Json:
    """Return the shape of the values of a schema. Raise ValueError for a definition that cannot be used."""
    if schema.type in ("AVRO", "JSON"):
        codec = avro_codec(schema.data)
        return _AvroShapes(codec).of(codec.schema, ())
    if schema.type == "PROTOBUF_NATIVE":
        return _ProtobufShapes().message(protobuf_class(schema.data).DESCRIPTOR, ())
    kind, logical = SINGLE.get(schema.type, ("bytes", ""))
    return {"kind": kind, "logical": logical} if logical else {"kind": kind}


class _Counted:
    """Count shapes, so that a small schema cannot ask for an endless form."""

    def __init__(self) -> None:
        self._left = MOST_SHAPES

    def _is_too_deep(self, name: str, outer: tuple[str, ...]) -> bool:
        self._left -= 1
        return name in outer or self._left < 0


class _AvroShapes(_Counted):
    def __init__(self, codec: AvroCodec) -> None:
        super().__init__()
        self._codec = codec

    def of(self, schema: Any, outer: tuple[str, ...]) -> Json:
        """Return the shape of a schema inside records of these names."""
        kind, about = self._codec.kind(schema)
        name = about.get("name", "") if kind in NAMED else ""
        if self._is_too_deep(name, outer):
            return {"kind": "recursive", "name": name or kind}
        if kind == "union":
            return {"kind": kind, "branches": [self.of(branch, outer) for branch in about]}
        found: Json = {"kind": "record" if kind == "error" else kind}
        if name:
            found["name"] = name
        found |= {key: about[key] for key in ("doc", "symbols", "size", "precision", "scale") if key in about}
        if "logicalType" in about:
            found["logical"] = about["logicalType"]
        for inner in ("items", "values"):
            if inner in about and kind in ("array", "map"):
                found[inner] = self.of(about[inner], outer)
        if found["kind"] == "record":
            found["fields"] = [self._field(each, (*outer, name)) for each in about["fields"]]
        elif kind not in NAMED and kind not in KINDS:
            raise AvroError(f"no such type: {kind}")
        return found

    def _field(self, field: Json, outer: tuple[str, ...]) -> Json:
        told: Json = {key: field[key] for key in ("default", "doc") if key in field}
        return {"name": field["name"], "shape": self.of(field["type"], outer), **told}


KINDS: Final = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string", "array", "map"})


WELL_KNOWN: Final[Mapping[str, Json]] = {
    "google.protobuf.Timestamp": {"kind": "string", "logical": "instant"},
    "google.protobuf.Duration": {"kind": "string", "logical": "duration"},
    **{
        f"google.protobuf.{name}Value": {"kind": kind}
        for name, kind in (("String", "string"), ("Bool", "boolean"), ("Double", "double"), ("Float", "float"))
    },
    **{f"google.protobuf.{name}Value": {"kind": "int"} for name in ("Int32", "UInt32")},
    **{f"google.protobuf.{name}Value": {"kind": "long"} for name in ("Int64", "UInt64")},
    **{
        f"google.protobuf.{name}": {"kind": "recursive", "name": name}
        for name in ("Any", "Struct", "Value", "ListValue")
    },
    "google.protobuf.FieldMask": {"kind": "recursive", "name": "FieldMask"},
    "google.protobuf.BytesValue": {"kind": "bytes", "logical": "base64"},
}
"""The shapes of messages that JSON writes in another way than by their fields."""


class _ProtobufShapes(_Counted):
    """Shapes of Protobuf messages. Every field may be left out, and bytes are base64."""

    def message(self, descriptor: Any, outer: tuple[str, ...]) -> Json:
        name = descriptor.full_name
        if self._is_too_deep(name, outer):
            return {"kind": "recursive", "name": name}
        fields = [
            {"name": each.name, "shape": self._field(each, (*outer, name)), "optional": True}
            for each in descriptor.fields
        ]
        return {"kind": "record", "name": name, "fields": fields}

    def _field(self, field: Any, outer: tuple[str, ...]) -> Json:
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            return {"kind": "map", "values": self._one(field.message_type.fields_by_name["value"], outer)}
        shape = self._one(field, outer)
        return {"kind": "array", "items": shape} if field.is_repeated else shape

    def _one(self, field: Any, outer: tuple[str, ...]) -> Json:
        if field.message_type is not None:
            name = field.message_type.full_name
            return dict(WELL_KNOWN[name]) if name in WELL_KNOWN else self.message(field.message_type, outer)
        if field.enum_type is not None:
            symbols = [value.name for value in field.enum_type.values]
            return {"kind": "enum", "name": field.enum_type.full_name, "symbols": symbols}
        kind = _PROTOBUF_KINDS[field.cpp_type]
        if field.type == field.TYPE_BYTES:
            return {"kind": "bytes", "logical": "base64"}
        return {"kind": kind}


_PROTOBUF_KINDS: Final = {
    1: "int",
    2: "long",
    3: "int",
    4: "long",
    5: "double",
    6: "float",
    7: "boolean",
    9: "string",
}
"""The kinds by FieldDescriptor.CPPTYPE_..."""


def example_of(shape: Json, now_ms: int) -> Any:
    """Return a value of a shape. Records that contain themselves end with null or an empty array where they can."""
    match shape["kind"]:
        case "record":
            fields = (each for each in shape["fields"] if not (each.get("optional") and _recurs(each["shape"])))
            return {each["name"]: _of_field(each, now_ms) for each in fields}
        case "array":
            return [] if _recurs(shape["items"]) else [example_of(shape["items"], now_ms)]
        case "map":
            return {} if _recurs(shape["values"]) else {"key": example_of(shape["values"], now_ms)}
        case "union":
            return example_of(_branch(shape["branches"]), now_ms)
        case "enum":
            return shape["symbols"][0]
        case "null" | "recursive":
            return None
        case "boolean":
            return False
        case "fixed":
            return 0 if shape.get("logical") == "decimal" else "\0" * shape["size"]
        case "bytes":
            return 0 if shape.get("logical") == "decimal" else ""
        case "string":
            return _example_text(shape.get("logical", ""))
        case "int" | "long":
            return _example_number(shape.get("logical", ""), now_ms)
    return 0.5


def _of_field(field: Json, now_ms: int) -> Any:
    return field["default"] if "default" in field else example_of(field["shape"], now_ms)


def _branch(branches: list[Json]) -> Json:
    """Return the branch for an example: the first that is neither null nor the record itself, or null."""
    plain = (each for each in branches if each["kind"] not in ("null", "recursive"))
    return next(plain, {"kind": "null"})


def _recurs(shape: Json) -> bool:
    return any(each["kind"] == "recursive" for each in _shapes(shape))


def _shapes(shape: Json) -> Iterator[Json]:
    """Yield a shape, and those of its items or values."""
    yield shape
    for inner in ("items", "values"):
        if inner in shape:
            yield from _shapes(shape[inner])


def _example_text(logical: str) -> str:
    return {
        "uuid": "00000000-0000-0000-0000-000000000000",
        "instant": "2026-01-31T12:00:00Z",
        "duration": "1.5s",
        "local-date-time": "2026-01-31T12:00:00",
    }.get(logical, "text")


def _example_number(logical: str, now_ms: int) -> int:
    unit, _, precision = logical.rpartition("-")
    if unit.endswith("timestamp"):
        return now_ms * {"millis": 1, "micros": 1000, "nanos": 1_000_000}.get(precision, 1)
    return now_ms // DAY_MS if logical == "date" else 0
