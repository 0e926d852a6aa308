"""JSON for people: mappings as aligned names and values, lists of mappings as tables, all else a line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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
    rows = {str(name): item for name, item in data.items()}
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
    cells = [names, *([_scalar(row.get(name, "")) for name in names] for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(names))]
    return ["  ".join(f"{cell:{width}}" for cell, width in zip(line, widths, strict=True)).rstrip() for line in cells]


def _is_row(item: Any) -> bool:
    """Whether it fits a line of a table."""
    return isinstance(item, Mapping) and 0 < len(item) <= 6 and not any(_is_block(cell) for cell in item.values())


def _is_block(item: Any) -> bool:
    """Whether it needs lines of its own."""
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
    return "-" if isinstance(item, Mapping) else str(item)
