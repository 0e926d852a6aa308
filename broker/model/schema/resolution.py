"""Decide whether one Avro schema can read data of another, as a Java broker does.

Java's `SchemaValidatorBuilder` looks for errors in the resolved grammar, which differs from the specification. Names of
records count only inside unions. A union branch is chosen by its full name, unless both unions are equal apart from
namespaces. An enum may lose symbols, because each value is checked when it is read. Aliases of fields count only for
records of the same full name.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Set
from typing import Any, Final

from pulsarium.broker.model.schema.definition import NAMED, Definition, Json, name_in_union
from pulsarium.proto.avro import RECORDS

PROMOTED: Final[Mapping[str, frozenset[str]]] = {
    "int": frozenset({"long", "float", "double"}),
    "long": frozenset({"float", "double"}),
    "float": frozenset({"double"}),
    "string": frozenset({"bytes"}),
    "bytes": frozenset({"string"}),
}
BITS: Final = {"int": 31, "long": 63}
MOST_STEPS: Final = 1_000_000  # a few seconds; a definition of 5 MB takes some 600,000


Pair = tuple[int, int]  # ids of the objects, which compare fast
Inner = Callable[[Json, Json], list[tuple[Json, Json]] | None]  # the pairs inside a pair; None: the pair is refused


class _TooMuchError(Exception):
    """Raised when the answer would take too long."""


def can_read(reader: Definition, writer: Definition) -> bool:
    """Return whether `reader` reads all data of `writer`. Return False when the answer would take too long."""
    try:
        return _Resolution(reader.tree, writer.tree).fits(reader.tree, writer.tree)
    except (_TooMuchError, RecursionError):
        return False


class _Resolution:
    """The resolution of two schemas. A pair that is being checked counts as fitting, because types may be recursive."""

    def __init__(self, reader: Json, writer: Json) -> None:
        self._readers: dict[str, Json] = {}
        self._writers: dict[str, Json] = {}
        self._aliases: dict[str, str] = {}  # old name -> new name of types and, as "record.field", of fields
        _learn(reader, self._readers, self._aliases)
        _learn(writer, self._writers, {})
        self._unions: dict[int, dict[str, Json]] = {}  # branches by name
        self._fits: dict[Pair, bool] = {}
        self._likes: set[Pair] = set()
        self._values: dict[Pair, bool] = {}
        self._steps = 0

    def fits(self, reader: Json, writer: Json) -> bool:
        """Return whether a type of the reader reads a type of the writer."""
        return self._throughout(reader, writer, self._needed) is not None

    def _throughout(self, reader: Json, writer: Json, inner: Inner, known: Set[Pair] = frozenset()) -> set[Pair] | None:
        """Return all pairs that `inner` reaches from a pair, except the `known` ones.

        Return None when `inner` refuses one.
        """
        seen: set[Pair] = set()
        left = [(reader, writer)]
        while left:
            reader, writer = left.pop()
            reader, writer = self._readers.get(_name(reader), reader), self._writers.get(_name(writer), writer)
            key = id(reader), id(writer)
            if key in seen or key in known:
                continue
            seen.add(key)
            self._step()
            pairs = inner(reader, writer)
            if pairs is None:
                return None
            left += pairs
        return seen

    def _step(self) -> None:
        self._steps += 1
        if self._steps > MOST_STEPS:
            raise _TooMuchError

    def _needed(self, reader: Json, writer: Json) -> list[tuple[Json, Json]] | None:
        """Return the pairs inside a pair that have to fit, or None when the pair does not fit."""
        read, written = kind_of(reader), kind_of(writer)
        if written == "union":
            if read == "union" and self._alike_throughout(reader, writer):
                return list(zip(reader, writer, strict=True))
            return [(reader, branch) for branch in writer]
        if read == "union":
            branch = self._branch(reader, writer, written)
            return None if branch is None else [(branch, writer)]
        if read != written:
            return [] if read in PROMOTED.get(written, ()) else None
        if read == "record":
            return self._fields(reader, writer)
        if read in NAMED:
            same = _local(reader["name"]) == _local(self._renamed(writer["name"]))
            return [] if same and reader.get("size") == writer.get("size") else None
        if read in ("array", "map"):
            return [(_element(reader), _element(writer))]
        return []

    def _alike_throughout(self, reader: Json, writer: Json) -> bool:
        """Return whether two unions are equal apart from namespaces and defaults.

        Then Java matches their branches in order.
        """
        alike = self._throughout(reader, writer, _inner_likes, self._likes)
        self._likes |= alike or set()
        return alike is not None

    def _fields(self, reader: Json, writer: Json) -> list[tuple[Json, Json]] | None:
        record = self._renamed(writer["name"])
        written = {self._renamed(f"{record}.{each['name']}", each["name"]): each["type"] for each in writer["fields"]}
        needed = []
        for each in reader["fields"]:
            if each["name"] in written:
                needed.append((each["type"], written[each["name"]]))
            elif "default" not in each or not self._is_value(each["type"], each["default"]):
                return None
        return needed

    def _renamed(self, name: str, default: str = "") -> str:
        return self._aliases.get(name, default or name)

    def _branch(self, union: list[Json], writer: Json, written: str) -> Json | None:
        """Return the branch that Java picks for a writer, or None.

        Java compares type and name first, then the fields of records, and then promotions.
        """
        branches = self._unions.get(id(union))
        if branches is None:
            branches = self._unions[id(union)] = {name_in_union(each): each for each in union}
        found = branches.get(self._renamed(writer["name"]) if written in NAMED else written)
        if found is not None and self._kind_read(found) == written:
            return found
        if written == "record":
            return self._alike(union, writer)
        promoted = PROMOTED.get(written, ())
        return next((branch for branch in union if self._kind_read(branch) in promoted), None)

    def _alike(self, union: list[Json], writer: Json) -> Json | None:
        """Return the last fitting record of the same local name, or else the first fitting record."""
        alike: Json | None = None
        for each in union:
            self._step()
            branch: Json = self._readers.get(_name(each), each)
            if kind_of(branch) == "record" and (alike is None or _local(branch["name"]) == _local(writer["name"])):
                alike = branch if self._fits_alone(branch, writer) else alike
        return alike

    def _fits_alone(self, reader: Json, writer: Json) -> bool:
        key = id(reader), id(writer)
        if key not in self._fits:
            self._fits[key] = True
            self._fits[key] = self.fits(reader, writer)
        return self._fits[key]

    def _kind_read(self, tree: Json) -> str:
        return kind_of(self._readers.get(_name(tree), tree))

    def _is_value(self, tree: Json, value: Any) -> bool:
        """Return whether the JSON of a default is a value of its type.

        A default that leads back to itself is no value, because Java finds no end there.
        """
        key = id(tree), id(value)
        if key not in self._values:
            self._step()
            self._values[key] = False
            self._values[key] = self._is_value_of(self._readers.get(_name(tree), tree), value)
        return self._values[key]

    def _is_value_of(self, tree: Json, value: Any) -> bool:
        kind = kind_of(tree)
        if kind == "union":
            return any(self._is_value(branch, value) for branch in tree)
        if kind == "null":
            return value is None
        if kind == "boolean":
            return isinstance(value, bool)
        if kind in BITS:
            is_whole = isinstance(value, int) or (isinstance(value, float) and math.isfinite(value) and value % 1 == 0)
            return is_whole and not isinstance(value, bool) and -(2 ** BITS[kind]) <= value < 2 ** BITS[kind]
        if kind in ("float", "double"):
            return isinstance(value, (int, float)) and not isinstance(value, bool)
        if kind == "array":
            return isinstance(value, list) and all(self._is_value(tree["items"], each) for each in value)
        if kind == "map":
            return isinstance(value, dict) and all(self._is_value(tree["values"], each) for each in value.values())
        if kind == "record":
            return isinstance(value, dict) and all(
                self._is_value(each["type"], value.get(each["name"], each.get("default"))) for each in tree["fields"]
            )
        return isinstance(value, str)  # string, bytes, fixed, enum


def _inner_likes(reader: Json, writer: Json) -> list[tuple[Json, Json]] | None:
    """Return the pairs inside a pair that have to be alike, in order, or None when the pair is not alike."""
    kind = kind_of(reader)
    if kind != kind_of(writer) or (kind in NAMED and _local(reader["name"]) != _local(writer["name"])):
        return None
    if kind == "union":
        return list(zip(reader, writer, strict=True)) if len(reader) == len(writer) else None
    if kind == "record":
        read, written = reader["fields"], writer["fields"]
        if [each["name"] for each in read] != [each["name"] for each in written]:
            return None
        return [(a["type"], b["type"]) for a, b in zip(read, written, strict=True)]
    if kind == "enum":
        return [] if reader["symbols"] == writer["symbols"] else None
    if kind == "fixed":
        return [] if reader["size"] == writer["size"] else None
    if kind in ("array", "map"):
        return [(_element(reader), _element(writer))]
    return []


def kind_of(tree: Json) -> str:
    """Return the type of a schema that is no reference. An error counts as a record."""
    if isinstance(tree, list):
        return "union"
    kind = tree["type"] if isinstance(tree, dict) else tree
    return "record" if kind in RECORDS else str(kind)


def _element(tree: Json) -> Json:
    """Return the element type of an array or a map."""
    return tree["items" if tree["type"] == "array" else "values"]


def _name(tree: Json) -> str:
    """Return the name that a reference refers to, or "" for any other schema."""
    return tree if isinstance(tree, str) else ""


def _local(name: str) -> str:
    return name.rpartition(".")[2]


def _learn(tree: Json, named: dict[str, Json], aliases: dict[str, str]) -> None:
    """Collect the types that a schema defines, and the aliases of types and fields."""
    if isinstance(tree, list):
        for each in tree:
            _learn(each, named, aliases)
    elif isinstance(tree, dict):
        if tree["type"] in NAMED:
            named[tree["name"]] = tree
            space = tree["name"].rpartition(".")[0]
            for alias in tree.get("aliases", ()):
                aliases[alias if "." in alias or not space else f"{space}.{alias}"] = tree["name"]
        for field in tree["fields"] if tree["type"] in RECORDS else ():
            for alias in field.get("aliases", ()):
                aliases[f"{tree['name']}.{alias}"] = field["name"]
            _learn(field["type"], named, aliases)
        if tree["type"] in ("array", "map"):
            _learn(_element(tree), named, aliases)
