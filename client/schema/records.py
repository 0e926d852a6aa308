"""Derive Avro records from dataclasses, as official clients do, and convert their instances."""

from __future__ import annotations

import dataclasses
import enum
import re
import types
import typing
from collections.abc import Callable, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Annotated, Any, NamedTuple, TypeAlias, Union

from pulsarium.client.errors import InvalidConfiguration
from pulsarium.client.schema.nodes import (
    Binary,
    DataForm,
    EnumNode,
    Items,
    Misfit,
    Moment,
    Nullable,
    Real,
    Scalar,
    SchemaNode,
    Values,
    encodable,
    expected,
    in_range,
)

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class AvroType(NamedTuple):
    """An Avro type for an annotation, as in `Annotated[int, AvroType("int")]`, which `AvroInt` is short for."""

    name: str


AvroInt: TypeAlias = Annotated[int, AvroType("int")]
"""An int of 32 bits, like `Integer` in records of the official Python client and Java's `int`.

A plain int is a long.
"""
AvroFloat: TypeAlias = Annotated[float, AvroType("float")]
"""A float of 4 bytes. A plain float is a double."""

_SCALARS: Mapping[Any, Callable[[], SchemaNode]] = MappingProxyType(
    {
        bool: lambda: Scalar("boolean", bool),
        int: lambda: Scalar("long", int, in_range(64)),
        AvroInt: lambda: Scalar("int", int, in_range(32)),
        float: lambda: Real("double"),
        AvroFloat: lambda: Real("float"),
        str: lambda: Scalar("string", str, encodable),
        bytes: Binary,
        datetime: Moment,
    }
)


class DataclassRecord:
    """A dataclass as an Avro record."""

    def __init__(self, kind: type, definition: dict[str, Any]) -> None:
        self.definition = definition
        self._kind = kind
        self._fields: list[tuple[str, SchemaNode, bool]] = []

    def add(self, name: str, node: SchemaNode, *, optional: bool) -> None:
        """Add a field. `optional` says that the dataclass has a default for the field."""
        self._fields.append((name, node, optional))

    def dump(self, value: Any, form: DataForm) -> Any:
        if not isinstance(value, self._kind):
            raise expected(self._kind.__name__, value)
        plain = {}
        for name, node, _ in self._fields:
            try:
                plain[name] = node.dump(getattr(value, name, None), form)
            except Misfit as error:
                raise error.inside(f".{name}") from None
        return plain

    def load(self, data: Any, form: DataForm) -> Any:
        """Return an instance of the dataclass.

        A missing field has the dataclass's default, or None where the type allows None. Unknown fields are ignored.
        """
        if not isinstance(data, dict):
            raise expected(self._kind.__name__, data)
        values = {}
        for name, node, optional in self._fields:
            try:
                if name in data:
                    values[name] = node.load(data[name], form)
                elif not optional and not isinstance(node, Nullable):
                    raise Misfit("missing")
                elif not optional:
                    values[name] = None
            except Misfit as error:
                raise error.inside(f".{name}") from None
        try:
            return self._kind(**values)
        except Exception as error:  # __post_init__ may raise any exception
            raise Misfit(f"{self._kind.__name__} refused the fields: {error!r}") from error


class _Known:
    """A reference by name to a record or enum that is defined earlier in the definition."""

    def __init__(self, node: SchemaNode, name: str) -> None:
        self.definition = name
        self.dump = node.dump
        self.load = node.load


def record_of(kind: type) -> DataclassRecord:
    """Return the record of a dataclass. Raise `InvalidConfiguration` for a type that Avro lacks.

    The class attributes `_avro_namespace` and `_sorted_fields` have the same meaning as in the official Python client.
    """
    if not dataclasses.is_dataclass(kind):
        raise InvalidConfiguration(f"{kind!r} is neither a dataclass nor an Avro definition")
    node = _Builder().record(kind, "")
    assert isinstance(node, DataclassRecord)
    return node


class _Builder:
    """Derive one definition, in which each name is defined once."""

    def __init__(self) -> None:
        self._named: dict[str, tuple[type, SchemaNode]] = {}

    def record(self, kind: type, namespace: str) -> SchemaNode:
        namespace = getattr(kind, "_avro_namespace", None) or namespace
        known, name = self._known(kind, namespace)
        if known is not None:
            return known
        definition: dict[str, Any] = {"type": "record", "name": kind.__name__}
        if namespace:
            definition["namespace"] = namespace
        node = DataclassRecord(kind, definition)
        self._named[name] = kind, node
        try:
            hints = typing.get_type_hints(kind, include_extras=True)
        except (NameError, TypeError) as error:
            raise InvalidConfiguration(f"{kind.__name__}: its annotations cannot be resolved: {error}") from error
        fields = [field for field in dataclasses.fields(kind) if field.init]
        if getattr(kind, "_sorted_fields", False):
            fields.sort(key=lambda field: field.name)
        definition["fields"] = [
            self._field(field, hints[field.name], node, namespace, f"{kind.__name__}.{field.name}") for field in fields
        ]
        return node

    def _field(
        self, field: dataclasses.Field[Any], hint: Any, record: DataclassRecord, namespace: str, where: str
    ) -> dict[str, Any]:
        _check_name(field.name, where)
        node = self._node(hint, namespace, where)
        default = _default_of(field)
        if isinstance(node, Nullable) and default is not None and default is not dataclasses.MISSING:
            node = Nullable(node.some, null_first=False)  # Avro takes a default as a value of the first branch
        optional = field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING
        record.add(field.name, node, optional=optional)
        definition = {"name": field.name, "type": node.definition}
        if default is dataclasses.MISSING and isinstance(node, Nullable):
            default = None  # as in Java, so that messages without this field can be read
        if default is not dataclasses.MISSING:
            try:
                definition["default"] = node.dump(default, DataForm.DEFAULT)
            except Misfit as error:
                raise InvalidConfiguration(f"{where}: the default does not fit the type: {error}") from error
        return definition

    def _node(self, hint: Any, namespace: str, where: str) -> SchemaNode:
        origin, arguments = typing.get_origin(hint), typing.get_args(hint)
        if origin is Annotated:
            marks = [one for one in arguments[1:] if isinstance(one, AvroType)]
            if not marks:
                return self._node(arguments[0], namespace, where)
            hint = Annotated[arguments[0], marks[0]]
        if (origin is Annotated or isinstance(hint, type)) and hint in _SCALARS:
            return _SCALARS[hint]()
        if origin in (Union, types.UnionType):
            some = [one for one in arguments if one is not type(None)]
            if len(some) == 1:
                return Nullable(self._node(some[0], namespace, where))
        if origin is list:
            return Items(self._node(arguments[0], namespace, where))
        if origin is dict and arguments[0] is str:
            return Values(self._node(arguments[1], namespace, where))
        if isinstance(hint, type) and issubclass(hint, enum.Enum):
            return self._choice(hint, namespace, where)
        if isinstance(hint, type) and dataclasses.is_dataclass(hint):
            return self.record(hint, namespace)
        shown = hint.__name__ if isinstance(hint, type) and origin is None else hint
        raise InvalidConfiguration(
            f"{where}: no Avro type for {shown}: use bool, int, float, str, bytes, datetime, enums, dataclasses, "
            "list[X], dict[str, X] and X | None, or give an Avro definition"
        )

    def _choice(self, kind: type[enum.Enum], namespace: str, where: str) -> SchemaNode:
        known, name = self._known(kind, namespace)
        if known is not None:
            return known
        definition: dict[str, Any] = {"type": "enum", "name": kind.__name__}
        if namespace:
            definition["namespace"] = namespace
        definition["symbols"] = [member.name for member in kind]
        for symbol in definition["symbols"]:
            _check_name(symbol, where)
        node = EnumNode(kind, definition)
        self._named[name] = kind, node
        return node

    def _known(self, kind: type, namespace: str) -> tuple[SchemaNode | None, str]:
        _check_name(kind.__name__, kind.__name__)
        name = f"{namespace}.{kind.__name__}" if namespace else kind.__name__
        if name not in self._named:
            return None, name
        first, node = self._named[name]
        if first is not kind:
            raise InvalidConfiguration(f"two types are called {name}: give one an _avro_namespace")
        return _Known(node, name), name


def _default_of(field: dataclasses.Field[Any]) -> Any:
    """Return a field's default, or MISSING without one.

    A factory that may return another value each time is no default in Avro.
    """
    factory: Any = field.default_factory
    if factory in (list, dict) or (isinstance(factory, type) and dataclasses.is_dataclass(factory)):
        return factory()
    if isinstance(field.default, float) and field.default - field.default != 0:
        return dataclasses.MISSING  # JSON, and so an Avro definition, has no infinity and no NaN
    return field.default


def _check_name(name: str, where: str) -> None:
    if not _NAME.fullmatch(name):
        raise InvalidConfiguration(f"{where}: {name!r} is no name in Avro: use A-Z, a-z, 0-9 and _")
