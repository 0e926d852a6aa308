"""Whether what was written with one Avro schema can be read with another: Apache's avro package, and Java's exceptions.

A Java broker asks `SchemaValidatorBuilder`, which looks for errors in the resolved grammar. In that, unlike in
the specification and in `ReaderWriterCompatibilityChecker`, the names of records do not count outside of unions, whose
branches are chosen by whole names; an enum may lose symbols (each value is looked at when it is read); and aliases of
fields count only for records of one whole name.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import avro.compatibility as rules
import avro.errors
import avro.schema

from pulsarium.broker.model.schema.definition import Definition
from pulsarium.broker.model.schema.definition_text import RECORDS

PROMOTED: Mapping[str, frozenset[str]] = {
    "int": frozenset({"long", "float", "double"}),
    "long": frozenset({"float", "double"}),
    "float": frozenset({"double"}),
    "string": frozenset({"bytes"}),
    "bytes": frozenset({"string"}),
}
COMPATIBLE = rules.SchemaCompatibilityType.compatible
FITS = rules.CompatibleResult
BITS = {"int": 31, "long": 63}

Result = rules.SchemaCompatibilityResult
Schema = avro.schema.Schema


def can_read(reader: Definition, writer: Definition) -> bool:
    """Whether `reader` reads everything that was written with `writer`."""
    try:
        parsed = [avro.schema.make_avsc_object(_records(each.tree), None, False, False) for each in (reader, writer)]
    except avro.errors.AvroException:  # a type that is named before it is defined: Java takes those, the package not
        return True
    checker = Checker(_aliases_of(reader.tree, {}))
    return checker.get_compatibility(parsed[0], parsed[1]).compatibility is COMPATIBLE


class Checker(rules.ReaderWriterCompatibilityChecker):
    """`aliases`: of each type that the reader renamed, the old name to the new one; "record.field" for fields."""

    def __init__(self, aliases: Mapping[str, str]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._aliases = aliases

    def calculate_compatibility(self, reader: Schema, writer: Schema, location: list[str]) -> Result:
        if isinstance(writer, avro.schema.UnionSchema):
            found = FITS
            for branch in writer.schemas:
                found = rules.merge(found, self.get_compatibility(reader, branch))
            return found
        if isinstance(reader, avro.schema.UnionSchema):
            fit = self._branch(reader, writer)
            return _lacks(writer, location) if fit is None else self.get_compatibility(fit, writer)
        if isinstance(reader, avro.schema.RecordSchema) and isinstance(writer, avro.schema.RecordSchema):
            return self.check_reader_writer_record_fields(reader, writer, location)
        if isinstance(reader, avro.schema.NamedSchema) and isinstance(writer, avro.schema.NamedSchema):
            if reader.type == writer.type and reader.name != self._renamed(writer.fullname).rpartition(".")[2]:
                return _refused(rules.SchemaIncompatibilityType.name_mismatch, f"expected: {writer.fullname}", location)
            if isinstance(reader, avro.schema.FixedSchema) and isinstance(writer, avro.schema.FixedSchema):
                return rules.check_fixed_size(reader, writer, location)
            if reader.type == writer.type:  # an enum
                return FITS
        return super().calculate_compatibility(reader, writer, location)

    def check_reader_writer_record_fields(
        self, reader: avro.schema.RecordSchema, writer: avro.schema.RecordSchema, location: list[str]
    ) -> Result:
        found = FITS
        record = self._renamed(writer.fullname)
        written = {self._aliases.get(f"{record}.{field.name}", field.name): field for field in writer.fields}
        for field in reader.fields:
            before = written.get(field.name)
            if before is not None:
                found = rules.merge(found, self.get_compatibility(field.type, before.type, field.name, location))
            elif not field.has_default or not _is_value(field.type, field.default):
                kind = rules.SchemaIncompatibilityType.reader_field_missing_default_value
                found = rules.merge(found, _refused(kind, field.name, location))
        return found

    def _renamed(self, name: str) -> str:
        return self._aliases.get(name, name)

    def _branch(self, reader: avro.schema.UnionSchema, writer: Schema) -> Schema | None:
        """The branch that Java picks for a writer: by type and name, a record by its fields, then by promotion."""
        alike: Schema | None = None
        branches: list[Schema] = reader.schemas
        for branch in branches:
            if branch.type != writer.type:
                continue
            if not isinstance(branch, avro.schema.NamedSchema) or not isinstance(writer, avro.schema.NamedSchema):
                return branch
            if branch.fullname == self._renamed(writer.fullname):
                return branch
            if isinstance(branch, avro.schema.RecordSchema) and (alike is None or branch.name == writer.name):
                fits = self.get_compatibility(branch, writer).compatibility is COMPATIBLE
                alike = branch if fits else alike
        if alike is not None:
            return alike
        promoted = PROMOTED.get(writer.type, frozenset())
        return next((branch for branch in branches if branch.type in promoted), None)


def _refused(kind: rules.SchemaIncompatibilityType, text: str, location: list[str]) -> Result:
    return rules.incompatible(kind, text, location)


def _lacks(writer: Schema, location: list[str]) -> Result:
    return _refused(rules.SchemaIncompatibilityType.missing_union_branch, f"no branch for {writer.type}", location)


def _records(tree: Any) -> Any:
    """The tree with records in place of errors, and without the properties of logical types."""
    if isinstance(tree, list):
        return [_records(each) for each in tree]
    if not isinstance(tree, dict):
        return tree
    below = {key: _records(tree[key]) for key in ("items", "values") if key in tree}
    if tree["type"] in RECORDS:
        return {
            "type": "record",
            "name": tree["name"],
            "namespace": "",
            "fields": [
                {**{key: each[key] for key in ("name", "default") if key in each}, "type": _records(each["type"])}
                for each in tree["fields"]
            ],
        }
    return {**{key: tree[key] for key in ("type", "name", "size", "symbols") if key in tree}, **below}


def _aliases_of(tree: Any, found: dict[str, str]) -> dict[str, str]:
    if isinstance(tree, list):
        for each in tree:
            _aliases_of(each, found)
    elif isinstance(tree, dict):
        space = tree.get("name", "").rpartition(".")[0]
        for alias in tree.get("aliases", ()):
            found[alias if "." in alias or not space else f"{space}.{alias}"] = tree["name"]
        for field in tree.get("fields", ()):
            for alias in field.get("aliases", ()):
                found[f"{tree['name']}.{alias}"] = field["name"]
            _aliases_of(field["type"], found)
        for below in ("items", "values"):
            _aliases_of(tree.get(below), found)
    return found


def _is_value(schema: Schema, value: Any) -> bool:
    """Whether the JSON of a default is a value of its type; of a union, of the first branch."""
    kind = schema.type
    if isinstance(schema, avro.schema.UnionSchema):
        return any(_is_value(branch, value) for branch in schema.schemas)
    if kind == "null":
        return value is None
    if kind == "boolean":
        return isinstance(value, bool)
    if kind in BITS:
        is_whole = isinstance(value, int) or (isinstance(value, float) and math.isfinite(value) and value == int(value))
        return is_whole and not isinstance(value, bool) and -(2 ** BITS[kind]) <= value < 2 ** BITS[kind]
    if kind in ("float", "double"):
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if isinstance(schema, avro.schema.ArraySchema):
        return isinstance(value, list) and all(_is_value(schema.items, each) for each in value)
    if isinstance(schema, avro.schema.MapSchema):
        return isinstance(value, dict) and all(_is_value(schema.values, each) for each in value.values())
    if isinstance(schema, avro.schema.RecordSchema):
        return isinstance(value, dict) and all(
            _is_value(field.type, value.get(field.name, field.default)) for field in schema.fields
        )
    return isinstance(value, str)  # string, bytes, fixed, enum
