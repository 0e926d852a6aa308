"""The code blocks of README.md, docs/ and helpers/ run in a test, or are illustrations with a reason."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from .blocks import (
    EXAMPLE,
    FILE,
    HIDDEN,
    ILLUSTRATION,
    OUTPUT,
    PAGES,
    ROOT,
    SHELL,
    TESTED,
    Block,
    blocks,
    commands,
    parse,
    refused,
    words_of,
)
from .session import SECONDS, Session

# Suites that tests/helpers/ and tests/examples/test_cookbook.py run whole.
WHOLE_SUITES = ("helpers/", "examples/cookbook/")
RUNS_HERE = (HIDDEN, OUTPUT, "")
READY = "pulsarium ready "  # the line that a broker prints
INLINE = re.compile(r"`(pulsarium [^`]+)`")


def named(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


ALL = {page: list(blocks(page)) for page in PAGES}
SESSIONS = [page for page, found in ALL.items() if any(block.marker in RUNS_HERE for block in found)]


def marked(marker: str) -> list[object]:
    return [pytest.param(block, id=str(block)) for found in ALL.values() for block in found if block.marker == marker]


@cache
def runners() -> str:
    """Return the text of all modules that run examples."""
    return "".join(path.read_text() for path in (ROOT / "tests").rglob("*.py"))


@pytest.mark.timeout(2 * SECONDS)
@pytest.mark.parametrize("page", SESSIONS, ids=named)
def test_the_blocks_of_a_page_run_in_its_order(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with Session(tmp_path, (block for block in ALL[page] if block.marker == FILE)) as session:
        for block in ALL[page]:
            if block.marker in RUNS_HERE:
                session.play(block)


@pytest.mark.parametrize("block", marked(EXAMPLE))
def test_a_program_of_a_page_is_a_file_that_a_test_runs(block: Block) -> None:
    assert (ROOT / block.about).read_text() == block.text
    assert block.about.startswith(WHOLE_SUITES) or Path(block.about).name in runners()


@pytest.mark.parametrize("block", marked(TESTED))
def test_the_test_of_a_block_reads_the_page(block: Block) -> None:
    text = (ROOT / block.about).read_text()
    assert block.page.name in text or f"pages.{block.page.stem}" in text


@pytest.mark.parametrize("block", marked(ILLUSTRATION))
def test_an_illustration_has_its_reason_and_can_be_read(block: Block) -> None:
    assert block.about
    named = re.findall(r"\b(?:tests|examples|conformance|\.ci)/[\w./-]+\w", block.about)
    assert [name for name in named if not (ROOT / name).exists()] == []
    parse(block.language, block.text)


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_command_of_a_page_exists_with_its_options(page: Path) -> None:
    in_blocks = [
        line
        for block in ALL[page]
        if block.language in (*SHELL, "", "console", "yaml")
        for line in commands(block.text)
        if line.startswith("pulsarium ")
    ]
    inline = INLINE.findall(re.sub(r"\s*\n\s*", " ", page.read_text()))
    wrong = {
        line: why
        for line in (*in_blocks, *inline)
        if not line.startswith(READY) and (why := refused(words_of(line)[1:]))
    }
    assert wrong == {}


def test_the_pages_have_the_blocks_that_a_reader_sees() -> None:
    """A fence that Sybil does not find would run nowhere."""
    for page, found in ALL.items():
        fences = re.findall(r"^ *```", page.read_text(), re.M)
        assert len(fences) == 2 * sum(block.marker != HIDDEN for block in found), page
