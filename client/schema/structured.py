"""Convert records to bytes, by a dataclass or an Avro definition. JSON is here, and Avro in `avro_schema`."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, ClassVar, cast, overload

from pulsarium.client.errors import InvalidConfiguration, InvalidMessage
from pulsarium.client.schema.nodes import DataForm, Misfit
from pulsarium.client.schema.records import DataclassRecord, record_of
from pulsarium.client.schema.schema import Schema, SchemaInfo, T
from pulsarium.proto.generated import PulsarApi_pb2 as pb

MOST_LEVELS = 200  # of nesting in a definition, because the libraries that read definitions are recursive


class Structured(Schema[T]):
    """A schema of records. Its values are instances of a dataclass, or dicts for an Avro definition."""

    _type: ClassVar[pb.Schema.Type]
    _form: ClassVar[DataForm]
    _properties: ClassVar[Mapping[str, str]] = MappingProxyType({})

    def __init__(self, record: type[Any] | Mapping[str, Any] | str) -> None:
        """Make the schema, from a dataclass or an Avro definition.

        Args:
            record: A dataclass, or the Avro definition of a record, as a dict or in JSON.

        Raises:
            InvalidConfiguration: `record` is neither, or has a type that Avro lacks, or a library is not installed.
        """
        self._record: DataclassRecord | None = None
        if isinstance(record, type):
            self._record = record_of(record)
            record = self._record.definition
        try:
            data = (record if isinstance(record, str) else json.dumps(record, separators=(",", ":"))).encode()
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidConfiguration(f"the Avro definition cannot be written as JSON: {error}") from error
        name = pb.Schema.Type.Name(self._type).upper()
        self.info: SchemaInfo = SchemaInfo(self._type, data, name, self._properties)
        try:
            self.definition: dict[str, Any] = read_definition(self.info.data)
            self._prepare()
        except InvalidMessage as error:
            raise InvalidConfiguration(*error.args) from error

    def _prepare(self) -> None:
        """Prepare the definition for encoding, once. Raise `InvalidMessage` when the definition cannot be used."""

    def encode(self, value: T) -> bytes:
        with self._refusing("value"):
            return self._pack(value if self._record is None else self._record.dump(value, self._form))

    def decode(self, data: bytes, writer: SchemaInfo | None = None) -> T:
        with self._refusing("message"):
            plain = self._unpack(data, writer)
            return cast(T, plain if self._record is None else self._record.load(plain, self._form))

    @abstractmethod
    def _pack(self, plain: Any) -> bytes:
        """Return the bytes of plain data. Any exception may be raised."""

    @abstractmethod
    def _unpack(self, data: bytes, writer: SchemaInfo | None) -> Any:
        """Return the plain data in bytes. Any exception may be raised."""

    @contextmanager
    def _refusing(self, what: str) -> Iterator[None]:
        """Raise each exception of the block as `InvalidMessage`."""
        try:
            yield
        except InvalidMessage:
            raise
        except Misfit as error:
            raise InvalidMessage(f"{self._called()}: {error}") from error
        except RecursionError:
            raise InvalidMessage(f"{self._called()}: the {what} is nested too deeply") from None
        except Exception as error:  # libraries raise many kinds
            raise self._failure(error) from error

    def _failure(self, error: Exception) -> InvalidMessage:
        text = str(error)
        text = text if len(text) <= 200 else f"{text[:200]}..."  # some texts contain a whole definition
        return InvalidMessage(f"{self._called()}: {text or 'no such value'} ({type(error).__name__})")

    def _called(self) -> str:
        return f"{type(self).__name__} of {self.definition['name']}"


def read_definition(text: bytes) -> dict[str, Any]:
    """Parse the Avro definition of a record, in JSON.

    Raise `InvalidMessage` for anything else. Its types are not checked.
    """
    try:
        definition = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidMessage(f"the Avro definition is not JSON: {error}") from None
    if not isinstance(definition, dict) or definition.get("type") != "record":
        raise InvalidMessage("the Avro definition is not a record")
    if not isinstance(definition.get("name"), str) or not isinstance(definition.get("fields"), list):
        raise InvalidMessage("the Avro definition of a record lacks name or fields")
    if not _is_flat(definition, MOST_LEVELS):
        raise InvalidMessage(f"the Avro definition has more than {MOST_LEVELS} levels")
    return definition


def _is_flat(value: Any, levels: int) -> bool:
    if levels == 0:
        return False
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return all(_is_flat(one, levels - 1) for one in inner)


class JsonSchema(Structured[T]):
    """JSON in UTF-8. The broker stores an Avro definition, as with official clients.

    A dataclass is written as Java writes it: bytes are base64, enums their names, and datetimes milliseconds, as Java's
    `Date`. Java's `Instant`, in seconds with a point, is read as well. With an Avro definition, values are dicts, which
    are written and read without a check against the definition.
    """

    _type = pb.Schema.Json
    _form = DataForm.JSON

    @overload
    def __init__(self: JsonSchema[dict[str, Any]], record: Mapping[str, Any] | str) -> None: ...

    @overload
    def __init__(self, record: type[T]) -> None: ...

    def __init__(self, record: Any) -> None:
        """Make the schema, from a dataclass or an Avro definition.

        Args:
            record: A dataclass, or the Avro definition of a record, as a dict or in JSON.

        Raises:
            InvalidConfiguration: `record` is neither, or has a type that Avro lacks.
        """
        super().__init__(record)

    def _pack(self, plain: Any) -> bytes:
        if not isinstance(plain, dict):
            raise InvalidMessage(f"{self._called()} takes dict, not {type(plain).__name__}")
        return json.dumps(plain, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()

    def _unpack(self, data: bytes, writer: SchemaInfo | None) -> Any:
        plain = json.loads(data)
        if not isinstance(plain, dict):
            raise InvalidMessage(f"{self._called()}: the message is no JSON object")
        return plain
