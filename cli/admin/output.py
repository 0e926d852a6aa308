"""Print results: as pulsar-admin for scripts, as tables for people, as JSON for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from typing import Any, Final

from pulsarium.proto.text import printable

# `auto` is `table` on a terminal and `text`, which is pulsar-admin's own format, elsewhere.
FORMATS: Final = ("auto", "text", "table", "json")


def rendered(style: str, data: Any, text: Callable[[], str]) -> str:
    if style == "auto":
        style = "table" if sys.stdout.isatty() else "text"
    if style == "json":
        return json.dumps(_plain(data), indent=2, ensure_ascii=False)
    return table(_plain(data)) if style == "table" else text()


def _plain(data: Any) -> Any:
    """Return JSON data, from the `as_json` of objects that are not JSON."""
    if isinstance(data, list):
        return [_plain(item) for item in data]
    return data.as_json() if hasattr(data, "as_json") else data


def value(data: Any, values: object = None) -> str:
    """Return a text as it is, anything else as Jackson prints it. None is `null`."""
    return data if isinstance(data, str) else jackson(data)


def json_value(data: Any, values: object = None) -> str:
    """Return the data as Jackson prints it. A text has quotes."""
    return jackson(data)


def silent(data: Any, values: object = None) -> str:
    """Return "", where pulsar-admin prints nothing and tables and JSON show the data."""
    return ""


def lines(data: Any, values: object = None) -> str:
    """Return one element a line, or "" for an empty list."""
    return "\n".join(value(item) for item in data or ())


def pairs(data: Any, values: object = None) -> str:
    """Return `key    value` lines, with values as Java's toString prints them."""
    return "\n".join(f"{key}    {java(item)}" for key, item in (data or {}).items())


def gson(data: Any, values: object = None) -> str:
    """Return the data as Gson prints it, with an indent of two."""
    return json.dumps(data, indent=2, ensure_ascii=False)


def compact(data: Any, values: object = None) -> str:
    return json.dumps(data, separators=(",", ":"), ensure_ascii=False)


def java(data: Any) -> str:
    """Return the data as Java's toString prints collections of strings, numbers and booleans."""
    if isinstance(data, list):
        return "[" + ", ".join(map(java, data)) + "]"
    if isinstance(data, Mapping):
        return "{" + ", ".join(f"{key}={java(item)}" for key, item in data.items()) + "}"
    return value(data)


def jackson(data: Any, depth: int = 0) -> str:
    """Return JSON as Jackson's pretty printer prints it: an object on several lines, an array on one."""
    if isinstance(data, Mapping):
        if not data:
            return "{ }"
        inner = "  " * (depth + 1)
        fields = (f"{inner}{_text(str(key))} : {jackson(item, depth + 1)}" for key, item in data.items())
        return "{\n" + ",\n".join(fields) + "\n" + "  " * depth + "}"
    if isinstance(data, list):
        return "[ " + ", ".join(jackson(item, depth) for item in data) + " ]" if data else "[ ]"
    return _double(data) if isinstance(data, float) else _text(data)


def _text(data: Any) -> str:
    return json.dumps(data, ensure_ascii=False)


def _double(number: float) -> str:
    """Return a number as Java's Double.toString does: with an exponent from ten million on and below a thousandth."""
    if number != number or number in (float("inf"), float("-inf")):
        return {"inf": '"Infinity"', "-inf": '"-Infinity"'}.get(str(number), '"NaN"')
    if number == 0 or 1e-3 <= abs(number) < 1e7:
        text = repr(number)
        return text if "e" not in text else f"{number:f}".rstrip("0")
    from decimal import Decimal  # such numbers are rare

    shortest = Decimal(repr(number)).normalize()
    digits = "".join(map(str, shortest.as_tuple().digits))
    sign = "-" if number < 0 else ""
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{shortest.adjusted()}"


_INDENT = "  "


def table(data: Any) -> str:
    if data is None:
        return "not set"
    if isinstance(data, Mapping):
        return "\n".join(_mapping(data)) or "nothing"
    if isinstance(data, list):
        return "\n".join(_list(data)) or "nothing"
    return _scalar(data)


def _mapping(data: Mapping[str, Any]) -> list[str]:
    rows = {printable(str(name)): item for name, item in data.items()}
    if rows and all(_is_row(item) for item in rows.values()):
        return _grid([{"": name, **item} for name, item in rows.items()])
    width = max((len(name) for name, item in rows.items() if not _is_block(item)), default=0)
    found = []
    for name, item in rows.items():
        if _is_block(item):
            found.append(name)
            found += [_INDENT + line for line in (_mapping(item) if isinstance(item, Mapping) else _list(item))]
        else:
            found.append(f"{name:{width}}  {_scalar(item)}".rstrip())
    return found


def _list(data: list[Any]) -> list[str]:
    if data and all(_is_row(item) for item in data):
        return _grid(data)
    found: list[str] = []
    for item in data:
        if _is_block(item):
            found += [*_mapping(item), ""] if isinstance(item, Mapping) else _list(item)
        else:
            found.append(_scalar(item))
    return found


def _grid(rows: list[Mapping[str, Any]]) -> list[str]:
    names = list(dict.fromkeys(name for row in rows for name in row))
    cells = [list(map(printable, names)), *([_scalar(row.get(name, "")) for name in names] for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(names))]
    return ["  ".join(f"{cell:{width}}" for cell, width in zip(line, widths, strict=True)).rstrip() for line in cells]


def _is_row(item: Any) -> bool:
    """Return whether `item` fits one line of a table."""
    return isinstance(item, Mapping) and 0 < len(item) <= 6 and not any(_is_block(cell) for cell in item.values())


def _is_block(item: Any) -> bool:
    """Return whether `item` needs several lines."""
    if isinstance(item, Mapping):
        return bool(item)
    return isinstance(item, list) and any(isinstance(part, Mapping | list) for part in item)


def _scalar(item: Any) -> str:
    if isinstance(item, bool):
        return "yes" if item else "no"
    if item is None:
        return "-"
    if isinstance(item, list):
        return ", ".join(map(_scalar, item)) or "-"
    return "-" if isinstance(item, Mapping) else printable(str(item))
