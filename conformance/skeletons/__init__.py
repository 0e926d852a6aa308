"""Skeletons of adapters: one small program for each language, which the author of an adapter fills in."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from typing import Final

LANGUAGES: Final[Mapping[str, str]] = {
    "python": "python.py",
    "go": "main.go",
    "java": "Adapter.java",
    "rust": "main.rs",
    "javascript": "adapter.mjs",
    "csharp": "Program.cs",
}
"""The file of each language."""


def skeleton(language: str) -> str:
    """Return the skeleton of an adapter in a language of `LANGUAGES`."""
    return files(__name__).joinpath(LANGUAGES[language]).read_text("utf-8")
