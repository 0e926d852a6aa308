"""Tables and screens for people."""

from __future__ import annotations

import click
import pytest

from pulsarium.cli.look.screen import Cell, Column, grid, rate, size

COLUMNS = (Column("NAME"), Column("BACKLOG", is_number=True), Column("REASON"))


def test_a_table_fits_the_terminal_and_keeps_its_numbers() -> None:
    lines = [click.unstyle(line) for line in grid(COLUMNS, [[Cell("n" * 40), Cell("123,456"), Cell("r" * 40)]], 40)]
    assert lines[0] == "NAME               BACKLOG  REASON"
    assert lines[1] == f"{'n' * 16}…  123,456  {'r' * 11}…"


def test_names_cannot_draw_on_the_terminal() -> None:
    assert grid(COLUMNS, [[Cell("\x1b[2J"), Cell("1"), Cell("")]], 80)[1].startswith("\\x1b[2J ")


@pytest.mark.parametrize(("number", "text"), [(0, "0"), (0.5, "0.5"), (9.9, "9.9"), (12.3, "12"), (12345, "12,345")])
def test_a_rate_has_a_decimal_only_where_it_is_small(number: float, text: str) -> None:
    assert rate(number) == text


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 B"), (999, "999 B"), (1000, "1 kB"), (1_234_000, "1.23 MB"), (5e15, "5,000.0 TB")]
)
def test_a_size_has_the_unit_that_fits(count: float, text: str) -> None:
    assert size(count) == text
