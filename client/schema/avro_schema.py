"""Records in Avro's binary form, without a header. The message's schema version names the writer's schema."""

from __future__ import annotations

import copy
import io
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, overload

from pulsarium.client.errors import InvalidConfiguration, InvalidMessage
from pulsarium.client.schema.nodes import DataForm
from pulsarium.client.schema.schema import SchemaInfo, T
from pulsarium.client.schema.structured import Structured, read_definition
from pulsarium.proto.errors import MissingExtra, look_for
from pulsarium.proto.generated import PulsarApi_pb2 as pb

MOST_WRITERS = 100  # cached definitions of other versions


class _Library(NamedTuple):
    """The functions of fastavro, compiled or in Python. The compiled ones crash the process on very deep nesting."""

    parse: Callable[[Any], Any]
    validate: Callable[..., Any]
    write: Callable[..., None]
    read: Callable[..., Any]


class _Parsed(NamedTuple):
    """A definition, parsed by fastavro."""

    schema: Any
    recursive: bool


class AvroSchema(Structured[T]):
    """Avro's binary form. It needs fastavro (`pip install "pulsarium[avro]"`).

    A message that was written with another version of the schema is read by Avro's rules: a new field has its default,
    a removed field is left out, and an int is read as a long. Records that contain themselves may be refused when they
    are nested more than a hundred levels deep.
    """

    _type = pb.Schema.Avro
    _form = DataForm.AVRO
    _properties = MappingProxyType({"__jsr310ConversionEnabled": "true"})  # needed for Instant in Java
    reads_by_writer = True

    @overload
    def __init__(self: AvroSchema[dict[str, Any]], record: Mapping[str, Any] | str) -> None: ...

    @overload
    def __init__(self, record: type[T]) -> None: ...

    def __init__(self, record: Any) -> None:
        """Make the schema, from a dataclass or an Avro definition.

        Args:
            record: A dataclass, or the Avro definition of a record, as a dict or in JSON.

        Raises:
            InvalidConfiguration: `record` is neither, or has a type that Avro lacks, or fastavro is not installed.
        """
        super().__init__(record)

    def _prepare(self) -> None:
        self._own = _parse(self.definition)
        self._library = _fastavro(pure=self._own.recursive)
        self._writers: dict[bytes, tuple[_Parsed, Any]] = {}

    def _pack(self, plain: Any) -> bytes:
        schema = self._own.schema
        if self._record is None:  # a dataclass has checked the value already
            if not isinstance(plain, dict):
                raise InvalidMessage(f"{self._called()} takes dict, not {type(plain).__name__}")
            # validation without errors is much faster, because it formats no text for each null
            if not self._library.validate(plain, schema, raise_errors=False):
                self._library.validate(plain, schema, raise_errors=True)
        buffer = io.BytesIO()
        self._library.write(buffer, schema, plain)
        return buffer.getvalue()

    def _unpack(self, data: bytes, writer: SchemaInfo | None) -> Any:
        if writer is None or (writer.data == self.info.data and writer.type == self._type):
            return self._library.read(io.BytesIO(data), self._own.schema, None)
        written, reader = self._written_with(writer)
        library = _fastavro(pure=True) if written.recursive else self._library
        # read all of it first: of fields that the reader lacks, fastavro skips any number, even beyond the data's end
        library.read(io.BytesIO(data), written.schema, None)
        # fastavro returns the definition's own default objects, which the application must not change
        return copy.deepcopy(library.read(io.BytesIO(data), written.schema, reader))

    def _written_with(self, writer: SchemaInfo) -> tuple[_Parsed, Any]:
        """Return the writer's schema, and this schema in the form that reads it."""
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
    """Parse a definition. Raise `InvalidMessage` when Avro refuses the definition, or an array has items without bytes.

    Such an array could have any length in a few bytes.
    """
    library = _fastavro(pure=False)
    walk = _Walk()
    try:
        schema = library.parse(definition)
        walk.takes_bytes(schema)
    except InvalidMessage:
        raise
    except Exception as error:  # fastavro raises many kinds
        raise InvalidMessage(f"the Avro definition cannot be used: {error!r}"[:200]) from error
    return _Parsed(schema, walk.recursive)


def _reading(own: dict[str, Any], written: dict[str, Any]) -> dict[str, Any]:
    """Return this definition, with aliases for records whose names only the writer has.

    Avro's rules refuse such records. Brokers and Java accept them.
    """
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
    """Yield the records that a definition defines."""
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
    """Check a parsed definition, in which references are full names."""

    def __init__(self) -> None:
        self.recursive = False
        self._named: dict[str, bool | None] = {}  # whether a value takes bytes; None while the type itself is checked

    def takes_bytes(self, schema: Any) -> bool:
        """Return whether each value of a schema takes at least one byte."""
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
                raise InvalidMessage("the Avro definition has an array whose items take no bytes")
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
