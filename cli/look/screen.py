"""Tables and screens for people: columns that fit the terminal, numbers, and a screen that is drawn again and again."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from pulsarium.cli.terminal import replace_screen, styled
from pulsarium.proto.text import printable

_WIDE: Final = 10_000  # columns of a pipe or a file, where nothing is cut
_DIGITS: Final = 7  # characters of a number, so that columns stay where they are when numbers grow
_LEAST: Final = 12  # characters of a column that is cut


class Column(NamedTuple):
    """A column of a table. The cells of a number stand at its right edge."""

    title: str
    is_number: bool = False


class Cell(NamedTuple):
    """A text of a table, with the arguments of `styled`."""

    text: str
    style: Mapping[str, Any] = MappingProxyType({})


def width() -> int:
    """Return the columns of the terminal."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else _WIDE


def height() -> int:
    """Return the lines of the terminal."""
    return shutil.get_terminal_size().lines if sys.stdout.isatty() else _WIDE


def grid(columns: Sequence[Column], rows: Iterable[Sequence[Cell]], most: int) -> list[str]:
    """Return the lines of a table in at most `most` characters. The first and the last column are cut where needed."""
    table = [[Cell(printable(cell.text), cell.style) for cell in row] for row in rows]
    sizes = [
        max(len(column.title), _DIGITS if column.is_number else 0, *(len(row[at].text) for row in table))
        for at, column in enumerate(columns)
    ]
    for at in (len(sizes) - 1, 0):
        over = sum(sizes) + 2 * (len(sizes) - 1) - most
        if over > 0:
            sizes[at] = max(sizes[at] - over, _LEAST)
    heading = [Cell(column.title, {"bold": True}) for column in columns]
    return [
        "  ".join(
            _placed(cell, size, column.is_number, is_last=column is columns[-1])
            for cell, size, column in zip(row, sizes, columns, strict=True)
        ).rstrip()
        for row in [heading, *table]
    ]


def _placed(cell: Cell, size: int, is_number: bool, *, is_last: bool) -> str:
    text = cut(cell.text, size)
    space = " " * (0 if is_last and not is_number else size - len(text))
    shown = styled(text, **cell.style) if cell.style and text else text
    return f"{space}{shown}" if is_number else f"{shown}{space}"


def cut(text: str, most: int) -> str:
    """Return the text, with an ellipsis where it is longer than `most` characters."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def rate(number: float) -> str:
    """Return a rate: one decimal below 10."""
    return f"{number:,.1f}".removesuffix(".0") if number < 10 else f"{number:,.0f}"


def size(count: float) -> str:
    """Return a number of bytes in a unit that fits."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:,.1f} TB"


def watch(draw: Callable[[], str], interval: float, count: int | None) -> None:
    """Draw the screen every `interval` seconds, `count` times or until Ctrl-C."""
    replace_screen(draw())
    drawn = 1
    while count is None or drawn < count:
        time.sleep(interval)
        replace_screen(draw())
        drawn += 1
