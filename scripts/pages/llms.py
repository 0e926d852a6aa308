"""docs/llms.txt: the pages of the site, for language models. The navigation of mkdocs.yml names them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

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
        if isinstance(part, dict):
            for title, pages in part.items():
                lines += ["", f"## {title}", "", *_pages(pages)]
    return "\n".join(lines) + "\n"


def _pages(pages: list[dict[str, str]]) -> Iterator[str]:
    for page in pages:
        for title, file in page.items():
            says = _first_sentence(ROOT / "docs" / file)
            yield f"- [{title}]({file.removesuffix('.md')}/)" + (f": {says}" if says else "")


def _first_sentence(page: Path) -> str:
    blocks = _CODE.sub("", page.read_text("utf-8")).split("\n\n")
    found = next((block for block in blocks if block.strip() and not block.lstrip().startswith(_NO_PARAGRAPH)), "")
    words = " ".join(_LINK.sub(r"\1", found).split())
    sentence = _SENTENCE.match(words)
    return (words if sentence is None else sentence[1]).rstrip(":")
