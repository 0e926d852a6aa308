"""Tests of characters, for java.util.regex: classes, POSIX names and categories."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence

Test = Callable[[str], bool]

LINE_ENDS = "\n\r\u0085\u2028\u2029"


def one_of(characters: Iterable[str]) -> Test:
    return frozenset(characters).__contains__


def not_(test: Test) -> Test:
    return lambda character: not test(character)


def either(tests: Sequence[Test]) -> Test:
    return tests[0] if len(tests) == 1 else lambda character: any(test(character) for test in tests)


def both(one: Test, other: Test) -> Test:
    return lambda character: one(character) and other(character)


def between(first: str, last: str) -> Test:
    return lambda character: first <= character <= last


def any_case(test: Test) -> Test:
    """Return a test that takes an ASCII letter in either case."""
    return lambda character: (
        test(character) or (character.isascii() and (test(character.lower()) or test(character.upper())))
    )


WORD = either([between("a", "z"), between("A", "Z"), between("0", "9"), one_of("_")])
DOT = not_(one_of(LINE_ENDS))
DIGIT, LOWER, UPPER = between("0", "9"), between("a", "z"), between("A", "Z")
ALPHA = either([LOWER, UPPER])
ALNUM = either([ALPHA, DIGIT])
PUNCT = one_of("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
SPACE = one_of(" \t\n\x0b\f\r")
HORIZONTAL = one_of(" \t\xa0\u1680\u180e\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B))))
VERTICAL = one_of("\x0b\f" + LINE_ENDS)

CLASSES: Mapping[str, Test] = {"d": DIGIT, "w": WORD, "s": SPACE, "h": HORIZONTAL, "v": VERTICAL}
CONTROLS: Mapping[str, str] = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\a", "e": "\x1b"}
POSIX: Mapping[str, Test] = {
    "ASCII": str.isascii,
    "Alpha": ALPHA,
    "Lower": LOWER,
    "Upper": UPPER,
    "Digit": DIGIT,
    "Alnum": ALNUM,
    "Punct": PUNCT,
    "Graph": either([ALNUM, PUNCT]),
    "Print": between(" ", "~"),
    "Blank": one_of(" \t"),
    "Cntrl": either([between("\0", "\x1f"), one_of("\x7f")]),
    "XDigit": one_of("0123456789abcdefABCDEF"),
    "Space": SPACE,
}
CATEGORIES = "L Lu Ll Lt Lm Lo M Mn Me Mc N Nd Nl No Z Zs Zl Zp C Cc Cf Co Cs Cn P Pd Ps Pe Pc Po Pi Pf S Sm Sc Sk So"


def category(name: str) -> Test | None:
    """Return the test of a general category of Unicode, or None for an unknown name."""
    known = name in CATEGORIES.split()
    return (lambda character: unicodedata.category(character).startswith(name)) if known else None
