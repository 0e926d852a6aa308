"""Read and write Avro definitions as Java's `Schema` does, with Java's texts for errors."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pulsarium.broker.jackson.errors import JsonError, NoContent
from pulsarium.broker.jackson.parsing import parse_first
from pulsarium.proto.avro import RECORDS

NAMED: Final = (*RECORDS, "enum", "fixed")
WORDS: Final = frozenset({"doc", "aliases"})  # keys that may differ in equal definitions

Json = Any


def pretty(tree: Json) -> str:
    """Return a definition as Java's `toString(true)` writes it."""
    return _pretty(_local(tree, ""), "")


def compact(value: Json) -> str:
    """Return JSON as Jackson writes it."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _children(tree: Mapping[str, Json]) -> Iterator[tuple[str, Json]]:
    """Yield the schemas below a schema, each with its key."""
    kind = tree.get("type")
    if kind == "array":
        yield "items", tree["items"]
    elif kind == "map":
        yield "values", tree["values"]
    elif kind in RECORDS:
        yield "fields", tree["fields"]


def bare(tree: Json) -> Json:
    """Return a definition without the keys that comparisons ignore."""
    if isinstance(tree, list):
        return [bare(each) for each in tree]
    if not isinstance(tree, dict):
        return tree
    kind = tree["type"]
    left = {key: value for key, value in tree.items() if key not in WORDS and not (kind == "enum" and key == "default")}
    left["type"] = "record" if kind in RECORDS else kind
    for key, below in _children(tree):
        left[key] = [_bare_field(each) for each in below] if key == "fields" else bare(below)
    return left


def _bare_field(field: Json) -> Json:
    left = {key: value for key, value in field.items() if key not in WORDS}
    return {**left, "type": bare(field["type"])}


def _local(tree: Json, space: str) -> Json:
    """Return a definition with names as they are written inside a namespace."""
    if isinstance(tree, list):
        return [_local(each, space) for each in tree]
    if not isinstance(tree, dict):
        before, _, name = str(tree).rpartition(".")
        return name if before and before == space else tree
    if tree["type"] in NAMED:
        own, _, name = tree["name"].rpartition(".")
        shown = {"type": tree["type"], "name": name}
        if own != space:
            shown["namespace"] = own
        tree = {**shown, **{key: value for key, value in tree.items() if key not in ("type", "name")}}
        space = own
    below = {}
    for key, value in _children(tree):
        below[key] = (
            [{**each, "type": _local(each["type"], space)} for each in value]
            if key == "fields"
            else _local(value, space)
        )
    return {**tree, **below}


def _pretty(value: Json, indent: str) -> str:
    """Return JSON as Jackson's default pretty printer writes it."""
    if isinstance(value, list):
        return f"[ {', '.join(_pretty(each, indent) for each in value)} ]" if value else "[ ]"
    if not isinstance(value, dict):
        return compact(value)
    if not value:
        return "{ }"
    deeper = indent + "  "
    lines = (f"{deeper}{compact(key)} : {_pretty(each, deeper)}" for key, each in value.items())
    return "{\n" + ",\n".join(lines) + f"\n{indent}}}"


PRIMITIVES: Final = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
OF_SCHEMA: Final = frozenset(
    ("doc", "fields", "items", "name", "namespace", "size", "symbols", "values", "type", "aliases")
)
OF_ENUM: Final = OF_SCHEMA | {"default"}
OF_FIELD: Final = frozenset(("default", "doc", "name", "order", "type", "aliases"))
AVRO: Final = "org.apache.avro"
DEEPEST: Final = 100  # nested schemas, because the code that walks through them is recursive


class DefinitionError(ValueError):
    """Raised for bytes that are no Avro definition. `str` is Java's exception as text, with its class."""


@dataclass(frozen=True, slots=True)
class Definition:
    """A definition that was read: names are full, and each named type is defined at its first use."""

    tree: Json

    @property
    def type(self) -> str:
        """Return the type of the definition: "union" for several types."""
        if isinstance(self.tree, list):
            return "union"
        return str(self.tree["type"] if isinstance(self.tree, dict) else self.tree)

    @property
    def pretty(self) -> str:
        """Return the definition as Java's `toString(true)` writes it.

        Properties that are nested too deeply get no indentation.
        """
        try:
            return pretty(self.tree)
        except RecursionError:
            return compact(self.tree)

    def equals(self, other: Definition) -> bool:
        """Return whether Java calls both definitions equal. Docs, aliases and defaults of enums do not count."""
        return bool(bare(self.tree) == bare(other.tree))


def read_definition(data: bytes) -> Definition:
    """Read a definition from its JSON. Raise `DefinitionError` when the JSON is none."""
    try:
        sent, text, end = parse_first(data.decode(errors="replace"))
    except NoContent:
        raise _refused("Cannot parse <null> schema") from None
    except JsonError as error:
        raise _refused(f"{error.java_class}: {error}") from None
    if rest := text[end:].strip():
        raise _refused(f"dangling content after end of schema: {rest}")
    reader = _Reader()
    tree = reader.schema(sent, "")
    for name in reader.wanted:
        if name not in reader.known:
            raise _refused(f"Undefined schema: {name}", "AvroTypeException")
    return Definition(tree)


def _refused(text: str, kind: str = "SchemaParseException") -> DefinitionError:
    return DefinitionError(f"{AVRO}.{kind}: {text}")


@dataclass(slots=True)
class _Reader:
    known: set[str] = field(default_factory=set)
    depth: int = 0
    wanted: list[str] = field(default_factory=list)

    def schema(self, sent: Json, space: str) -> Json:
        if self.depth == DEEPEST:
            raise _refused("Schema is too deep")
        self.depth += 1
        found = self._schema(sent, space)
        self.depth -= 1
        return found

    def _schema(self, sent: Json, space: str) -> Json:
        if isinstance(sent, str):
            return self._named(sent, space)
        if isinstance(sent, list):
            return self._union(sent, space)
        if not isinstance(sent, dict):
            raise _refused(f"Schema not yet supported: {compact(sent)}")
        kind = _text(sent, "type", "No type")
        if kind in PRIMITIVES:
            more = _properties(sent, OF_SCHEMA)
            return {"type": kind, **more} if more else kind
        if kind in NAMED:
            return self._definition(sent, kind, space)
        if kind in ("array", "map"):
            below = "items" if kind == "array" else "values"
            if sent.get(below) is None:
                raise _refused(f"{kind.title()} has no {below} type: {compact(sent)}")
            return {"type": kind, below: self.schema(sent[below], space), **_properties(sent, OF_SCHEMA)}
        return self._named(kind, space)

    def _named(self, name: str, space: str) -> str:
        if name in PRIMITIVES:
            return name
        whole = name if "." in name or not space else f"{space}.{name}"
        self.wanted.append(whole)
        return whole

    def _union(self, sent: list[Json], space: str) -> list[Json]:
        branches = [self.schema(each, space) for each in sent]
        seen = set()
        for branch in branches:
            if isinstance(branch, list):
                raise _refused(f"Nested union: {compact(sent)}", "AvroRuntimeException")
            name = name_in_union(branch)
            if name in seen:
                raise _refused(f"Duplicate in union:{name}", "AvroRuntimeException")
            seen.add(name)
        return branches

    def _definition(self, sent: dict[str, Json], kind: str, space: str) -> Json:
        space = sent["namespace"] if isinstance(sent.get("namespace"), str) else space
        name = _text(sent, "name", "No name in schema")
        if "." in name:
            space, _, name = name.rpartition(".")
        if name in PRIMITIVES and not space:
            raise _refused(f"Schemas may not be named after primitives: {name}", "AvroTypeException")
        _check_name(name)
        for part in space.split(".") if space else ():
            _check_name(part, f'Namespace part "{part}" is invalid: ')
        whole = f"{space}.{name}" if space else name
        if whole in self.known:  # Java keeps the first definition
            return whole
        self.known.add(whole)
        found = {"type": kind, "name": whole, **_words(sent)}
        if kind == "enum":
            found |= _symbols(sent)
        elif kind == "fixed":
            size = sent.get("size")
            if not isinstance(size, int) or isinstance(size, bool):
                raise _refused(f"Invalid or no size: {compact(sent)}")
            if size < 0:
                raise _refused(f"Malformed data. Length is negative: {size}", "AvroRuntimeException")
            found["size"] = size
        else:
            found["fields"] = self._fields(sent, whole, space)
        return {**found, **_properties(sent, OF_ENUM if kind == "enum" else OF_SCHEMA), **_aliases(sent)}

    def _fields(self, sent: dict[str, Json], record: str, space: str) -> list[Json]:
        fields = sent.get("fields")
        if not isinstance(fields, list):
            raise _refused(f"Record has no fields: {compact(sent)}")
        found: dict[str, Json] = {}
        for each in fields:
            name = _text(each, "name", "No field name")
            if each.get("type") is None:
                raise _refused(f"No field type: {compact(each)}")
            kind = self.schema(each["type"], space)
            _check_name(name)
            order = each.get("order")
            if isinstance(order, str) and order.lower() not in ("ascending", "descending", "ignore"):
                text = f"No enum constant org.apache.avro.Schema.Field.Order.{order.upper()}"
                raise DefinitionError(f"java.lang.IllegalArgumentException: {text}")
            if name in found:
                raise _refused(f"Duplicate field {name} in record {record}", "AvroRuntimeException")
            read = {"name": name, "type": kind, **_words(each)}
            if "default" in each:
                read["default"] = each["default"]
            if isinstance(order, str) and order.lower() != "ascending":
                read["order"] = order.lower()
            found[name] = {**read, **_aliases(each), **_properties(each, OF_FIELD)}
        return list(found.values())


def _text(sent: Json, key: str, missing: str) -> str:
    value = sent.get(key) if isinstance(sent, dict) else None
    if not isinstance(value, str):
        raise _refused(f"{missing}: {compact(sent)}")
    return value


def _check_name(name: str, before: str = "") -> None:
    """Raise `DefinitionError` for a name that Pulsar refuses. Letters, digits, `_` and `$` are allowed."""
    if not name:
        raise _refused(f"{before}Empty name")
    if not (name[0].isalpha() or name[0] in "_$"):
        raise _refused(f"{before}Illegal initial character: {name}")
    if not all(character.isalnum() or character in "_$" for character in name):
        raise _refused(f"{before}Illegal character in: {name}")


def _symbols(sent: dict[str, Json]) -> dict[str, Json]:
    symbols = sent.get("symbols")
    if not isinstance(symbols, list):
        raise _refused(f"Enum has no symbols: {compact(sent)}")
    found: dict[str, None] = {}
    for symbol in symbols:
        text = symbol if isinstance(symbol, str) else compact(symbol)
        _check_name(text)
        if text in found:
            raise _refused(f"Duplicate enum symbol: {text}")
        found[text] = None
    default = sent.get("default")
    if not isinstance(default, str):
        return {"symbols": list(found)}
    if default not in found:
        raise _refused(f"The Enum Default: {default} is not in the enum symbol set: [{', '.join(found)}]")
    return {"symbols": list(found), "default": default}


def _words(sent: dict[str, Json]) -> dict[str, Json]:
    return {"doc": sent["doc"]} if isinstance(sent.get("doc"), str) else {}


def _aliases(sent: dict[str, Json]) -> dict[str, Json]:
    aliases = sent.get("aliases")
    if aliases is None:
        return {}
    if not isinstance(aliases, list):
        raise _refused(f"aliases not an array: {compact(sent)}")
    if not all(isinstance(each, str) for each in aliases):
        raise _refused(f"alias not a string: {compact(next(each for each in aliases if not isinstance(each, str)))}")
    return {"aliases": aliases} if aliases else {}


def _properties(sent: dict[str, Json], own: frozenset[str]) -> dict[str, Json]:
    return {key: value for key, value in sent.items() if key not in own and value is not None}


def name_in_union(branch: Json) -> str:
    """Return the name of a branch, which is unique in its union."""
    if isinstance(branch, str):
        return branch
    return str(branch["name"] if branch["type"] in NAMED else branch["type"])
