"""The files that a run writes."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path

import pytest

from pulsarium.matrix.cell import Outcome, Result
from pulsarium.matrix.report import Table, html, markdown, read_markdown, write

from .results import RESULTS

GO, PYTHON, RUST = "Go 0.19.0", "Python (C++ core) 3.13.0", "Rust 6.9.1"


def test_columns_tell_profiles_apart_where_there_are_several() -> None:
    other = Result.of_row({**RESULTS[0].row(), "profile": "pulsar-4.2"})
    table = Table([*RESULTS, other])
    assert [table.title(column) for column in table.columns] == [
        f"{PYTHON}, pip",
        f"{GO}, pip",
        f"{RUST}, pip",
        f"{PYTHON}, pulsar-4.2",
    ]
    masked = Table([RESULTS[0], Result.of_row({**RESULTS[0].row(), "mask": "v19"})])
    assert [masked.title(column) for column in masked.columns] == [f"{PYTHON}, none", f"{PYTHON}, v19"]


def test_markdown_reads_back() -> None:
    assert read_markdown(markdown(Table(RESULTS))) == {
        ("reader", PYTHON): Outcome.PASS,
        ("reader", GO): Outcome.FAIL,
        ("reader", RUST): Outcome.SKIPPED,
        ("seek-id", PYTHON): Outcome.TIMEOUT,
        ("seek-id", GO): Outcome.UNSUPPORTED,
    }


def test_markdown_says_why() -> None:
    text = markdown(Table(RESULTS))
    assert text.startswith("1 pass, 1 fail, 1 timeout, 1 unsupported, 1 skipped.\n")
    assert (
        f"Failed:\n\n- got &lt;1>, wanted 2 \\| 3 ({GO}: `reader`)\n- no answer in time ({PYTHON}: `seek-id`)" in text
    )
    assert f"Not supported:\n\n- no such call ({GO}: `seek-id`)\n" in text
    assert f"Not run:\n\n- no cargo on PATH ({RUST}: `reader`)\n" in text


class Page(HTMLParser):
    """The links and the balance of tags of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a":
            self.links.append(dict(attrs)["href"] or "")
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_html_stands_alone_and_leads_to_the_files() -> None:
    text = html(Table(RESULTS))
    page = Page()
    page.feed(text)
    assert page.open == []
    assert page.links == ["a%20b/reader.log", "a%20b/reader.pulscap", "go/reader.log"]
    assert "<1>" not in text
    assert "http" not in text


def test_the_report_is_written_in_four_formats(tmp_path: Path) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    written = write(RESULTS, tmp_path)
    assert [path.name for path in written] == ["matrix.html", "matrix.md", "matrix.json", "matrix.parquet"]
    rows = json.loads((tmp_path / "matrix.json").read_text())
    assert [Result.of_row(row) for row in rows] == RESULTS
    assert pq.read_table(tmp_path / "matrix.parquet").to_pylist()[1]["reason"] == RESULTS[1].reason


def test_files_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pulsarium.matrix.report.find_spec", lambda name: None)
    assert [path.name for path in write(RESULTS, tmp_path)] == ["matrix.html", "matrix.md", "matrix.json"]
