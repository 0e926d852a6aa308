"""The code blocks of the pages, found by Sybil, and the comment before each that says who runs it."""

from __future__ import annotations

import ast
import json
import re
import shlex
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

import click
import yaml
from sybil import Document, Region, Sybil
from sybil.parsers.markdown.lexers import DirectiveInHTMLCommentLexer, RawFencedCodeBlockLexer

from pulsarium.cli.main import cli

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted(ROOT.glob("helpers/*/README.md"))]
SHELL: Final = ("bash", "sh")
EXAMPLE: Final = "example"  # the text of a file, which a test runs
TESTED: Final = "tested"  # a test file that reads the page, and runs the block
FILE: Final = "file"  # a file that later commands of the page read
OUTPUT: Final = "output"  # what the block before prints; `...` is any text
ILLUSTRATION: Final = "illustration"  # not run, for this reason
HIDDEN: Final = "hidden"  # commands that the page does not show
MARKERS: Final = (EXAMPLE, TESTED, FILE, OUTPUT, ILLUSTRATION)
_MARKER = re.compile(rf"^ *<!-- ({'|'.join(MARKERS)})(?:: ((?:(?!-->).)*))? -->\n\Z", re.M | re.S)
_FENCE = RawFencedCodeBlockLexer(re.compile(r"(?P<language>[\w-]*)$\n", re.M))
_HIDDEN = DirectiveInHTMLCommentLexer(HIDDEN)


@dataclass(frozen=True)
class Block:
    """A code block. `marker` is empty for a block that runs where it stands."""

    page: Path
    line: int
    language: str
    text: str
    marker: str
    about: str = ""

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def _regions(document: Document) -> Iterator[Region]:
    for region in (*_FENCE(document), *_HIDDEN(document)):
        before = _MARKER.search(document.text[: region.start])
        region.parsed = before.groups("") if before else (region.lexemes.get("directive", ""), "")
        yield region


_SYBIL = Sybil([_regions])


def blocks(page: Path) -> Iterator[Block]:
    """Yield the blocks of a page in its order."""
    for example in _SYBIL.parse(page).examples():
        found, (marker, about) = example.region.lexemes, example.parsed
        language = found["language"] if "language" in found else found["arguments"]
        yield Block(page, example.line, language, str(found["source"]), marker, about)


def commands(text: str) -> Iterator[str]:
    """Yield the commands of a shell block: a backslash continues a line, and a comment is none."""
    for line in text.replace("\\\n", " ").splitlines():
        line = re.sub(r"^\$ ", "", line.strip())
        if line and not line.startswith("#"):
            yield line


def matches(shown: str, printed: str) -> bool:
    """Return whether a page shows what was printed; `...` on the page is any text."""
    return re.search(r"[\s\S]*?".join(re.escape(part.strip()) for part in shown.split("...")), printed) is not None


def words_of(command: str) -> list[str]:
    """Return the words of a command up to the first operator of the shell."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words = list(lexer)
    ends = (at for at, word in enumerate(words) if word[0] in "|&;<>()" and at)
    return words[: next(ends, len(words))]


def refused(words: Iterable[str]) -> str:
    """Return the reason why `pulsarium` does not know a command or an option, or ""."""
    command: click.Command = cli
    rest = list(words)
    try:
        while isinstance(command, click.Group):
            with command.make_context("pulsarium", rest) as context:
                rest = [*context._protected_args, *context.args]
                if not rest or rest[0].isupper():
                    return ""
                _, found, rest = command.resolve_command(context, rest)
                assert found is not None
                command = found
        command.make_context("pulsarium", rest)
    except (click.NoSuchOption, click.exceptions.NoArgsIsHelpError) as error:
        return str(error)
    except click.UsageError as error:
        return str(error) if "No such command" in str(error) else ""
    except click.exceptions.Exit:
        return ""
    return ""


def parse(language: str, text: str) -> None:
    """Read a block that is not run. Raise the error of its language."""
    if language == "python":
        compile(text, "block", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT | ast.PyCF_ONLY_AST)
    elif language == "json":
        json.loads(text)
    elif language == "yaml":
        yaml.safe_load(text)
    elif language == "toml":
        tomllib.loads(text)
    elif language == "xml":
        ET.fromstring(text)
