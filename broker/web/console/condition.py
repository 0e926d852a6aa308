"""Conditions on messages: `total > 100 and customer == "Ada"`, in the language of the faults' `when`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, Final

from pulsarium.broker.expression import Condition, ExpressionError, FrameField, Value, parse
from pulsarium.broker.model.schema.data import SchemaData, SchemaError, split
from pulsarium.broker.web.console.reading import FoundMessage
from pulsarium.broker.web.console.rows import Rows
from pulsarium.broker.web.http.errors import AdminError
from pulsarium.proto.json_values import avro_codec
from pulsarium.proto.numbers import signed
from pulsarium.proto.text import did_you_mean, text_of

Read = Callable[[Rows, FoundMessage], Iterable[Value]]


def _number(name: str) -> Read:
    """Return the reader of a number that the message or its entry has."""

    def read(rows: Rows, found: FoundMessage) -> Iterable[Value]:
        owners: tuple[Any, ...] = (found.single, found.entry.metadata)
        for owner in owners:
            if owner is not None and name in owner.DESCRIPTOR.fields_by_name and owner.HasField(name):
                return [signed(getattr(owner, name))]
        return []

    return read


def _producer(rows: Rows, found: FoundMessage) -> Iterable[Value]:
    return [] if found.entry.metadata is None else [text_of(found.entry.metadata.producer_name)]


FACTS: Final[dict[str, tuple[type, Read]]] = {
    "key": (object, lambda rows, found: _scalars(rows.key_of(found))),
    "producer": (str, _producer),
    "size": (int, lambda rows, found: [len(found.body)]),
    "publish_time": (int, _number("publish_time")),
    "event_time": (int, _number("event_time")),
    "deliver_at_time": (int, _number("deliver_at_time")),
    "sequence_id": (int, _number("sequence_id")),
    "partition": (int, lambda rows, found: [found.entry.part] if found.entry.part >= 0 else []),
}
"""The names that every message has, whatever its value."""
PROPERTIES: Final = "properties"
VALUE: Final = "value"


def condition_of(text: str, rows: Rows, schema: SchemaData | None) -> Condition:
    """Return the condition of an expression. `schema` is the newest one of the topic, whose fields may stand alone.

    Raise `AdminError` 400 for an expression that is not valid.
    """
    try:
        return parse(text, partial(_field, rows, _fields_of(schema)))
    except ExpressionError as error:
        raise AdminError(400, f"where: {error}") from None


def _field(rows: Rows, known: Iterable[str], path: tuple[str, ...]) -> FrameField:
    root, rest = path[0], path[1:]
    if root in FACTS and not rest:
        kind, read = FACTS[root]
        return FrameField(kind, partial(read, rows))
    if root == PROPERTIES and len(rest) == 1:
        return FrameField(str, partial(_property, rest[0]))
    if root == PROPERTIES:
        raise ExpressionError('name one property: properties["NAME"]')
    if root == VALUE:
        path = rest
    elif known and root not in known:
        hint = did_you_mean(root, [*known, *FACTS, PROPERTIES]) or f"the schema has {', '.join(list(known)[:10])}"
        raise ExpressionError(f"there is no field {root}; {hint}")
    return FrameField(object, lambda found: _along(rows.value_of(found), path))


def _property(name: str, found: FoundMessage) -> Iterator[Value]:
    for pair in () if found.single is None else found.single.properties:
        if text_of(pair.key) == name:
            yield text_of(pair.value)


def _along(value: Any, path: tuple[str, ...]) -> Iterator[Any]:
    """Yield the values at a path. Each item of an array counts."""
    if isinstance(value, list):
        for each in value:
            yield from _along(each, path)
    elif not path:
        yield from () if value is None else (value,)
    elif isinstance(value, dict) and path[0] in value:
        yield from _along(value[path[0]], path[1:])


def _scalars(value: Any) -> Iterator[Any]:
    return _along(value, ())


def _fields_of(schema: SchemaData | None) -> list[str]:
    """Return the names of the value's fields, or [] where they are not known."""
    try:
        if schema is not None and schema.type == "KEY_VALUE":
            schema = split(schema)[1]
        if schema is None or schema.type not in ("AVRO", "JSON"):
            return []
        codec = avro_codec(schema.data)
        kind, about = codec.kind(codec.schema)
        return [field["name"] for field in about["fields"]] if kind == "record" else []
    except (ValueError, SchemaError):
        return []
