"""The script `scripts/screenshots`: the pictures of the README and the tutorial."""

from __future__ import annotations

import re
import struct
import subprocess
from pathlib import Path

import pytest

from scripts.screenshots import DARK_IN_DOCS, IN_DOCS, PICTURES, WIDTH
from tests.foreign.browser import chromium

ROOT = Path(__file__).parents[2]


def size(picture: Path) -> tuple[int, int]:
    """Return width and height from the head of a PNG file."""
    head = picture.read_bytes()[:24]
    assert head[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", head[16:])
    return width, height


@pytest.mark.heavy
@pytest.mark.foreign
def test_the_pictures_of_the_page_are_made_anew(tmp_path: Path) -> None:
    chromium()
    subprocess.run([ROOT / "scripts" / "screenshots", tmp_path], check=True, capture_output=True)
    assert {each.name: size(each) for each in tmp_path.iterdir()} == {
        **{f"{name}.png": (WIDTH, PICTURES[name].height) for name in IN_DOCS},
        **{f"{name}-dark.png": (WIDTH, PICTURES[name].height) for name in DARK_IN_DOCS},
    }


def test_each_picture_is_shown_by_a_page() -> None:
    pages = (ROOT / "docs" / page for page in ("index.md", "tutorial.md", "console.md"))
    shown = "".join(page.read_text() for page in (ROOT / "README.md", *pages))
    assert set(re.findall(r"images/([\w-]+\.png)", shown)) == {
        *(f"{name}.png" for name in IN_DOCS),
        *(f"{name}-dark.png" for name in DARK_IN_DOCS),
    }
