"""docs/pipeline-options.md."""

from __future__ import annotations

import re
from pathlib import Path

from scripts.pages.pipeline import pipeline_page

CODE = Path(__file__).parents[3] / "pipeline"
READ = re.compile(r'options\.(?:text|required|number|flag|choice)\(\s*"([^"]+)"')


def test_every_option_that_the_code_reads_is_there() -> None:
    names = {name for path in CODE.rglob("*.py") for name in READ.findall(path.read_text())}
    assert len(names) > 20
    page = pipeline_page()
    assert [name for name in sorted(names) if f"| `{name}` |" not in page] == []


def test_no_option_is_there_twice_for_the_same() -> None:
    for part in pipeline_page().split("\n## ")[1:]:
        named = re.findall(r"^\| `([^`]+)`", part, re.M)
        assert len(named) == len(set(named)) > 3
