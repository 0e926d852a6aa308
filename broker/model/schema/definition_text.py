"""The texts of Avro definitions that were read, and what of them counts when two are compared."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

RECORDS: Final = ("record", "error")
NAMED: Final = (*RECORDS, "enum", "fixed")
WORDS: Final = frozenset({"doc", "aliases"})  # what two equal definitions may differ in

Json = Any


def pretty(tree: Json) -> str:
    """As Java's `toString(true)` writes a definition."""
    return _pretty(_local(tree, ""), "")


def compact(value: Json) -> str:
    """JSON as Jackson writes it."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _children(tree: Mapping[str, Json]) -> Iterator[tuple[str, Json]]:
    """What is below a schema, each with the key that it stands at."""
    kind = tree.get("type")
    if kind == "array":
        yield "items", tree["items"]
    elif kind == "map":
        yield "values", tree["values"]
    elif kind in RECORDS:
        yield "fields", tree["fields"]


def bare(tree: Json) -> Json:
    """Without what does not count when schemas are compared."""
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
    """With names as they are written inside a namespace."""
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
    """JSON as Jackson's default pretty printer writes it."""
    if isinstance(value, list):
        return f"[ {', '.join(_pretty(each, indent) for each in value)} ]" if value else "[ ]"
    if not isinstance(value, dict):
        return compact(value)
    if not value:
        return "{ }"
    deeper = indent + "  "
    lines = (f"{deeper}{compact(key)} : {_pretty(each, deeper)}" for key, each in value.items())
    return "{\n" + ",\n".join(lines) + f"\n{indent}}}"
