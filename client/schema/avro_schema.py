"""Records in Avro's binary form, without a header: the schema they were written with is known by its version."""

from __future__ import annotations

import copy
import io
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, overload

from pulsarium.client.errors import InvalidConfiguration, InvalidMessage
from pulsarium.client.schema.nodes import Form
from pulsarium.client.schema.schema import SchemaInfo, T
from pulsarium.client.schema.structured import Structured, read_definition
from pulsarium.proto.errors import MissingExtra, look_for
from pulsarium.proto.generated import PulsarApi_pb2 as pb

MOST_WRITERS = 100  # definitions of others that are kept, parsed


class _Library(NamedTuple):
    """fastavro, compiled or in Python: the compiled one takes a process down with what is nested too deeply."""

    parse: Callable[[Any], Any]
    validate: Callable[..., Any]
    write: Callable[..., None]
    read: Callable[..., Any]


class _Parsed(NamedTuple):
    """A definition as fastavro has it."""

    schema: Any
    recursive: bool


class AvroSchema(Structured[T]):
    """Avro's binary form; needs fastavro (`pip install "pulsarium[avro]"`).

    What was written with another version of the schema is read by Avro's rules: fields that are new here have their
    defaults, those that are gone are left out, int becomes long and so on. Of records that contain themselves, more
    than a hundred levels may be too much.
    """

    _type = pb.Schema.Avro
    _form = Form.AVRO
    _properties = MappingProxyType({"__jsr310ConversionEnabled": "true"})  # Java needs it to read datetimes as Instant
    reads_by_writer = True

    @overload
    def __init__(self: AvroSchema[dict[str, Any]], record: Mapping[str, Any] | str) -> None: ...

    @overload
    def __init__(self, record: type[T]) -> None: ...

    def __init__(self, record: Any) -> None:
        """`record`: a dataclass, or a record's Avro definition, as a dict or in JSON.

        InvalidConfiguration for what is neither, and for types that Avro has not, and without fastavro.
        """
        super().__init__(record)

    def _prepare(self) -> None:
        self._own = _parse(self.definition)
        self._library = _fastavro(pure=self._own.recursive)
        self._writers: dict[bytes, tuple[_Parsed, Any]] = {}

    def _pack(self, plain: Any) -> bytes:
        schema = self._own.schema
        if self._record is None:  # else it was held against it before
            if not isinstance(plain, dict):
                raise InvalidMessage(f"{self._called()} takes dict, not {type(plain).__name__}")
            if not self._library.validate(plain, schema, raise_errors=False):  # which writes no error for each null
                self._library.validate(plain, schema, raise_errors=True)
        buffer = io.BytesIO()
        self._library.write(buffer, schema, plain)
        return buffer.getvalue()

    def _unpack(self, data: bytes, writer: SchemaInfo | None) -> Any:
        if writer is None or (writer.data == self.info.data and writer.type == self._type):
            return self._library.read(io.BytesIO(data), self._own.schema, None)
        written, reader = self._written_with(writer)
        library = _fastavro(pure=True) if written.recursive else self._library
        # to begin with all of it: fastavro skips fields that we lack also behind the end, as often as they say
        library.read(io.BytesIO(data), written.schema, None)
        # defaults are objects of the definition, and not for the application to change
        return copy.deepcopy(library.read(io.BytesIO(data), written.schema, reader))

    def _written_with(self, writer: SchemaInfo) -> tuple[_Parsed, Any]:
        """A writer's schema, and our own as it reads that."""
        if writer.type != self._type:
            kind = pb.Schema.Type.Name(writer.type) if writer.type in pb.Schema.Type.values() else writer.type
            raise InvalidMessage(f"{self._called()}: the message was written with a schema of type {kind}")
        found = self._writers.get(writer.data)
        if found is None:
            definition = read_definition(writer.data)
            written = _parse(definition)
            found = written, self._library.parse(_reading(self.definition, definition))
            if len(self._writers) >= MOST_WRITERS:
                del self._writers[next(iter(self._writers))]
            self._writers[writer.data] = found
        return found


def _fastavro(*, pure: bool) -> _Library:
    try:
        look_for("AvroSchema", "avro", "fastavro")
    except MissingExtra as error:
        raise InvalidConfiguration(str(error)) from error
    if pure:
        from fastavro import _read_py, _schema_py, _validation_py, _write_py

        return _Library(
            _schema_py.parse_schema,
            _validation_py.validate,
            _write_py.schemaless_writer,
            _read_py.schemaless_reader,
        )
    from fastavro import parse_schema, schemaless_reader, schemaless_writer
    from fastavro.validation import validate

    return _Library(parse_schema, validate, schemaless_writer, schemaless_reader)


def _parse(definition: dict[str, Any]) -> _Parsed:
    """InvalidMessage for what Avro does not know, and for arrays of nothing, which can be endless in a few bytes."""
    library = _fastavro(pure=False)
    walk = _Walk()
    try:
        schema = library.parse(definition)
        walk.takes_bytes(schema)
    except InvalidMessage:
        raise
    except Exception as error:  # of many kinds
        raise InvalidMessage(f"an Avro definition that cannot be used: {error!r}"[:200]) from error
    return _Parsed(schema, walk.recursive)


def _reading(own: dict[str, Any], written: dict[str, Any]) -> dict[str, Any]:
    """Our own definition, which takes records of names that it has not for its own: brokers and Java let them pass."""
    own = copy.deepcopy(own)
    ours = {_simple(record["name"]) for record in _records(own)}
    theirs = {_simple(record["name"]) for record in _records(written)}
    for record in _records(own):
        others = theirs - ours if _simple(record["name"]) not in theirs else set()
        if record is own:
            others.add(_simple(written["name"]))
        record["aliases"] = [*record.get("aliases", ()), *sorted(others)]
    return own


def _records(schema: Any) -> Iterator[dict[str, Any]]:
    """Those that a definition defines."""
    if isinstance(schema, list):
        for branch in schema:
            yield from _records(branch)
    elif isinstance(schema, dict):
        if schema["type"] == "record":
            yield schema
            for field in schema["fields"]:
                yield from _records(field["type"])
        for inner in ("type", "items", "values"):
            yield from _records(schema.get(inner))


def _simple(name: str) -> str:
    return name.rpartition(".")[2]


class _Walk:
    """Goes through a parsed definition, in which references are full names."""

    def __init__(self) -> None:
        self.recursive = False
        self._named: dict[str, bool | None] = {}  # whether it takes bytes; None: we are in it

    def takes_bytes(self, schema: Any) -> bool:
        """Whether each value takes at least one."""
        if isinstance(schema, list):
            for branch in schema:
                self.takes_bytes(branch)
            return True
        if isinstance(schema, str):
            if schema not in self._named:
                return schema != "null"
            known = self._named[schema]
            self.recursive |= known is None
            return known is not False
        kind = schema["type"]
        if kind == "array":
            if not self.takes_bytes(schema["items"]):
                raise InvalidMessage("an Avro definition with an array of nothing")
        elif kind == "map":
            self.takes_bytes(schema["values"])
        elif kind == "fixed":
            self._named[schema["name"]] = schema["size"] > 0
            return bool(schema["size"] > 0)
        elif kind == "enum":
            self._named[schema["name"]] = True
        elif kind in ("record", "error"):
            self._named[schema["name"]] = None
            takes = [self.takes_bytes(field["type"]) for field in schema["fields"]]
            self._named[schema["name"]] = any(takes)
            return any(takes)
        else:
            return self.takes_bytes(kind)
        return True
