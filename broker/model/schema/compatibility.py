"""Check a new schema against the existing ones of a topic by strategy, as Pulsar does for each type."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from pulsarium.broker.model.schema.data import IncompatibleSchemaError, SchemaData, split
from pulsarium.broker.model.schema.definition import Definition, DefinitionError
from pulsarium.broker.model.schema.resolution import can_read
from pulsarium.broker.model.schema.validation import root_name

ALWAYS: Final = "ALWAYS_COMPATIBLE"
NEVER: Final = "ALWAYS_INCOMPATIBLE"
READS_OLD: Final = frozenset({"BACKWARD", "BACKWARD_TRANSITIVE", "FULL", "FULL_TRANSITIVE"})
READ_BY_OLD: Final = frozenset({"FORWARD", "FORWARD_TRANSITIVE", "FULL", "FULL_TRANSITIVE"})
NOT_AVRO: Final = "Incompatible schema: expected Avro schema format for SchemaType.JSON"


def is_transitive(strategy: str) -> bool:
    return strategy.endswith("_TRANSITIVE")


def check(existing: Sequence[SchemaData], new: SchemaData, strategy: str) -> None:
    """Raise `IncompatibleSchemaError` unless `new` fits the newest existing schema.

    A transitive strategy compares all existing schemas.
    """
    if strategy == ALWAYS:
        return
    for each in existing:
        if each.type != new.type:
            text = f"Incompatible schema: exists schema type {each.type}, new schema type {new.type}"
            raise IncompatibleSchemaError(text)
    CHECKS.get(new.type, _check_others)(existing, new, strategy)


def _check_avro(existing: Sequence[SchemaData], new: SchemaData, strategy: str) -> None:
    try:
        definition = new.definition()
        before = [each.definition() for each in reversed(existing)]
    except DefinitionError as error:
        raise IncompatibleSchemaError(str(error)) from None
    if before and strategy == NEVER:
        raise _unreadable(definition, definition, strategy)
    for each in before if is_transitive(strategy) else before[:1]:
        if strategy in READ_BY_OLD and not can_read(each, definition):
            raise _unreadable(definition, each, strategy)
        if strategy in READS_OLD and not can_read(definition, each):
            raise _unreadable(each, definition, strategy)


def _unreadable(writer: Definition, reader: Definition, strategy: str) -> IncompatibleSchemaError:
    failed = f"Unable to read schema: \n{writer.pretty}\nusing schema:\n{reader.pretty}"
    named = f"org.apache.avro.SchemaValidationException: {failed}"
    return IncompatibleSchemaError(f"Error during schema compatibility check with strategy {strategy}: {named}")


def _check_json(existing: Sequence[SchemaData], new: SchemaData, strategy: str) -> None:
    """Raise `IncompatibleSchemaError` for a definition that is not in Avro's format (PIP-464)."""
    try:
        new.definition()
    except DefinitionError:
        raise IncompatibleSchemaError(NOT_AVRO) from None
    _check_avro(existing, new, strategy)


def _check_protobuf_native(existing: Sequence[SchemaData], new: SchemaData, strategy: str) -> None:
    root = root_name(new.data)
    for each in existing:
        before = root_name(each.data)
        if strategy == NEVER:
            raise IncompatibleSchemaError("Unknown SchemaCompatibilityStrategy.")
        if root != before:
            text = f"Protobuf root message change is not allowed under the '{strategy}' strategy."
            raise IncompatibleSchemaError(f"{text} Original message name: '{before}', new message name: '{root}'.")


def _check_key_value(existing: Sequence[SchemaData], new: SchemaData, strategy: str) -> None:
    key, value = split(new)
    before = [split(each) for each in existing]
    for old_key, old_value in before:
        if (old_key.type, old_value.type) != (key.type, value.type):
            raise IncompatibleSchemaError(
                "Key schemas or Value schemas are different schema type,"
                f" from key schema type is {old_key.type} and to key schema is {key.type},"
                f" from value schema is {old_value.type} and to value schema is {value.type}"
            )
    for part, olds in ((key, [old for old, _ in before]), (value, [old for _, old in before])):
        CHECKS.get(part.type, _check_others)(olds, part, strategy)


def _check_external(existing: Sequence[SchemaData], new: SchemaData, strategy: str) -> None:
    """Accept the schema, because `check` has refused other types already."""


def _check_others(existing: Sequence[SchemaData], new: SchemaData, strategy: str) -> None:
    """Refuse with ALWAYS_INCOMPATIBLE only.

    PROTOBUF is here too, because schemaRegistryCompatibilityCheckers lacks it.
    """
    if strategy == NEVER:
        raise IncompatibleSchemaError("Schema compatibility strategy is ALWAYS_INCOMPATIBLE")


Check = Callable[[Sequence[SchemaData], SchemaData, str], None]
CHECKS: Final[Mapping[str, Check]] = {
    "AVRO": _check_avro,
    "JSON": _check_json,
    "PROTOBUF_NATIVE": _check_protobuf_native,
    "KEY_VALUE": _check_key_value,
    "EXTERNAL": _check_external,
}
