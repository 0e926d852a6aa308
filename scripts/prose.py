"""Check the prose of docstrings, comments and help by the rules of docs/style.md.

usage: .venv/bin/python -P scripts/prose.py [PATH ...]

Prints each finding as path:line: text, and exits with 1 when there is one. PATH is a file or a folder of the checkout;
the default is all code. ruff's D401 looks for the verb that a docstring begins with.
"""

from __future__ import annotations

import ast
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
NOT_OURS = {"build", "dist", "generated", "node_modules", "target"}
MOST_WORDS = 25  # in a sentence of a summary
# No docstring, and no help of an option, begins with one of these.
OPENINGS = """
    All Also And As At Be Because Before Behind Both But By Does Each Either Every Everybody Everything
    Everywhere For From Has How If In Into Is It Its Itself Neither Never No Nobody None Nor Not Nothing Now
    Of On Once One Only Or Other Others Out Several So Some Somebody Something Such That Their Them Then There
    These They This Those Though Till To Under Until Up What Whatever When Whence Where Wherever Whether Which
    Whichever While Who Whoever Whole Whom Whose Why With Within Without
"""
BANNED_OPENINGS = frozenset(OPENINGS.split())
# What readers stumbled over, and what to write instead.
PHRASES = {
    re.compile(pattern, re.IGNORECASE): instead
    for pattern, instead in {
        r"\bthe how maniest\b": "the number of",
        r"\bof no need\b": "not needed",
        r"\bbecomes? of\b": "happens to",
        r"\bthat there is\b": "that exists",
        r"\bthere is not\b": "does not exist",
        r"\bsuch (?:a )?ones?\b": "the noun",
        r"\bwho asks\b": "the caller, the client",
        r"\bbehaviour": "behavior",
        r"\bcolour": "color",
        r"\bhonour": "honor",
        r"\bneighbour": "neighbor",
    }.items()
}
DOCUMENTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Module)
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
        if isinstance(node, DOCUMENTED) and (text := ast.get_docstring(node)):
            yield from (Finding(path, node.body[0].lineno, each) for each in _of_docstring(text))
    yield from (Finding(path, line, each) for line, text in _comments(path) for each in _of_text(text))


def _of_docstring(text: str) -> Iterator[str]:
    summary = text.partition("\n\n")[0]
    for sentence in _SENTENCE.split(summary):
        if len(sentence.split()) > MOST_WORDS:
            yield f"{len(sentence.split())} words in a sentence, at most {MOST_WORDS}: {_start(sentence)}"
    yield from _of_help(text)


def _of_help(text: str) -> Iterator[str]:
    first = _WORD.match(text)
    if first and first[0] in BANNED_OPENINGS:
        yield f"begin with a verb or the noun: {_start(text)}"
    yield from _of_text(text)


def _of_text(text: str) -> Iterator[str]:
    for pattern, instead in PHRASES.items():
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
    """Yield the Python files below `paths`, and by default those of all folders. Leave out generated files."""
    folders = (str(path) for path in sorted(ROOT.iterdir()) if path.is_dir() and not path.name.startswith("."))
    for path in paths or folders:
        found = ROOT / path
        for each in sorted(found.rglob("*.py")) if found.is_dir() else [found]:
            if not NOT_OURS.intersection(each.relative_to(ROOT).parts):
                yield each


def main() -> int:
    """Print all findings, and return the exit code."""
    if {"-h", "--help"} & set(sys.argv[1:]):
        print((__doc__ or "").strip())
        return 0
    found = [each for path in files(sys.argv[1:]) for each in findings(path)]
    for each in found:
        print(each)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
