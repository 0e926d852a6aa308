"""docs/llms.txt: the pages of the site, for language models. The navigation of mkdocs.yml names them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml

ROOT: Final = Path(__file__).parents[2]
_CODE: Final = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
_NO_PARAGRAPH: Final = ("#", "<", "|", ":", "-", "Generated from")
_LINK: Final = re.compile(r"\[([^]]*)\]\([^)]*\)")
_SENTENCE: Final = re.compile(r"(.+?[.:])(?:\s|$)")


def llms_txt() -> str:
    """Return the list of all pages, each with its first sentence."""
    site = yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8").partition("plugins:")[0])
    lines = [f"# {site['site_name']}", "", f"> {site['site_description']}"]
    for part in site["nav"]:
        for title, pages in part.items():
            if isinstance(pages, list):
                lines += ["", f"## {title}", "", *_pages(pages)]
    return "\n".join(lines) + "\n"


def _pages(pages: list[Any]) -> Iterator[str]:
    """Yield a line for each page of a part, and of the parts inside it. A page without a title has its own."""
    for page in pages:
        for title, file in page.items() if isinstance(page, dict) else [(None, page)]:
            if isinstance(file, list):
                yield from _pages(file)
            else:
                yield _line(title, file)


def _line(title: str | None, file: str) -> str:
    page = ROOT / "docs" / file
    shown = title or page.read_text("utf-8").partition("\n")[0].removeprefix("# ")
    says = _first_sentence(page)
    address = file.removesuffix(".md").removesuffix("/index")
    return f"- [{shown}]({address}/)" + (f": {says}" if says else "")


def _first_sentence(page: Path) -> str:
    blocks = _CODE.sub("", page.read_text("utf-8")).split("\n\n")
    found = next((block for block in blocks if block.strip() and not block.lstrip().startswith(_NO_PARAGRAPH)), "")
    words = " ".join(_LINK.sub(r"\1", found).split())
    sentence = _SENTENCE.match(words)
    return (words if sentence is None else sentence[1]).rstrip(":")
