"""Check the prose of docstrings, comments and help by the rules of docs/style.md.

usage: .venv/bin/python -P scripts/prose.py [PATH ...]

Prints each finding as path:line: text, and exits with 1 when there is one. PATH is a file or a folder of the checkout;
the default is all code. The rules are in scripts/prose.toml. The docstring of a test may begin with the noun: its name
is a sentence already.
"""

from __future__ import annotations

import ast
import re
import sys
import tokenize
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
ROOMS = (
    *("proto", "capture", "rest", "broker", "client", "pipeline", "matrix", "cli", "kit", "bench"),
    *("examples", "container", "scripts", "tests"),
)
RULES = tomllib.loads((ROOT / "scripts" / "prose.toml").read_text())
VERBS = frozenset(RULES["verbs"].split())
BANNED_OPENINGS = frozenset(RULES["banned_openings"].split())
PHRASES = [(re.compile(pattern, re.IGNORECASE), instead) for pattern, instead in RULES["phrases"].items()]
MOST_WORDS = int(RULES["most_words"])
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
HELP = {"help", "short_help", "epilog", "doc"}
_WORD = re.compile(r"[A-Za-z][\w'-]*")
_SENTENCE = re.compile(r"(?<=[.!?:;])\s+")


class Finding(NamedTuple):
    """A text that breaks a rule, and its place."""

    path: Path
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line}: {self.text}"


def findings(path: Path) -> Iterator[Finding]:
    """Yield what is wrong with the prose of one Python file."""
    for node in ast.walk(ast.parse(path.read_text(), str(path))):
        if isinstance(node, ast.keyword) and node.arg in HELP and isinstance(node.value, ast.Constant):
            yield from (Finding(path, node.value.lineno, each) for each in _of_help(str(node.value.value)))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module):
            text = ast.get_docstring(node)
            if text:
                line = node.body[0].lineno
                needs_verb = isinstance(node, FUNCTIONS) and not node.name.startswith("test_")
                yield from (Finding(path, line, each) for each in _of_docstring(text, needs_verb))
    yield from (Finding(path, line, each) for line, text in _comments(path) for each in _of_text(text))


def _of_docstring(text: str, needs_verb: bool) -> Iterator[str]:
    summary = text.partition("\n\n")[0]
    first = _WORD.match(summary)
    if needs_verb and (not first or first[0] not in VERBS):
        yield f"begin with a verb: {_start(summary)}"
    elif first and first[0] in BANNED_OPENINGS:
        yield f"begin with a verb or the noun: {_start(summary)}"
    for sentence in _SENTENCE.split(summary):
        if len(sentence.split()) > MOST_WORDS:
            yield f"{len(sentence.split())} words in a sentence, at most {MOST_WORDS}: {_start(sentence)}"
    yield from _of_text(text)


def _of_help(text: str) -> Iterator[str]:
    first = _WORD.match(text)
    if first and first[0] in BANNED_OPENINGS:
        yield f"begin with a verb or the noun: {_start(text)}"
    yield from _of_text(text)


def _of_text(text: str) -> Iterator[str]:
    for pattern, instead in PHRASES:
        if found := pattern.search(text):
            yield f'"{found[0]}": write {instead}'


def _comments(path: Path) -> Iterator[tuple[int, str]]:
    with path.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            if token.type == tokenize.COMMENT:
                yield token.start[0], token.string


def _start(text: str) -> str:
    line = " ".join(text.split())
    return f"{line[:70]}..." if len(line) > 73 else line


def files(paths: list[str]) -> Iterator[Path]:
    """Yield the Python files below `paths`, generated ones left out."""
    for path in paths:
        found = ROOT / path
        for each in sorted(found.rglob("*.py")) if found.is_dir() else [found]:
            if "generated" not in each.parts:
                yield each


def main() -> int:
    """Print all findings, and return the exit code."""
    if {"-h", "--help"} & set(sys.argv[1:]):
        print((__doc__ or "").strip())
        return 0
    found = [each for path in files(sys.argv[1:] or list(ROOMS)) for each in findings(path)]
    for each in found:
        print(each)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
