"""Parse regular expressions of java.util.regex, with the texts of Java's errors."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from pulsarium.broker.model.topic.java_characters import (
    ALNUM,
    ALPHA,
    CLASSES,
    CONTROLS,
    DIGIT,
    DOT,
    POSIX,
    Test,
    any_case,
    between,
    both,
    category,
    either,
    not_,
    one_of,
)
from pulsarium.broker.model.topic.java_regex import (
    END,
    LAST,
    NO_WORD_EDGE,
    START,
    WORD_EDGE,
    Atomic,
    Chain,
    Literal,
    NotEvaluable,
    OneOf,
    RegexChoice,
    RegexLook,
    RegexNode,
    Repeat,
)

DEEPEST = 50  # nested groups; deeper patterns count as not evaluable
MOST_REPEATS = 1000  # as in RE2

_QUOTED = re.compile(r"\\(?:Q(.*?)(?:\\E|$)|.)", re.DOTALL)
_SEVERAL = "dDwWsShHvVpP"  # escapes that stand for several characters
_REFERENCES = "123456789"
_CASED = ("Lower", "Upper", "Lu", "Ll", "Lt")  # with (?i), Java treats these in a way of its own


class PatternSyntaxError(ValueError):
    """A pattern that Java refuses, with Java's text."""

    def __init__(self, description: str, index: int, pattern: str) -> None:
        where = f" near index {index}" if index >= 0 else ""
        pointer = f"\n{' ' * index}^" if 0 <= index < len(pattern) else ""
        super().__init__(f"{description}{where}\n{pattern}{pointer}")


def parse(pattern: str) -> RegexNode:
    """Return the node of a pattern.

    Raise `PatternSyntaxError` when Java refuses it, and `NotEvaluable` for what only Java reads, such as a back
    reference.
    """
    return _Parser(pattern).parse()


class _Parser:
    def __init__(self, pattern: str) -> None:
        self._given = pattern
        self._pattern = _QUOTED.sub(_unquoted, pattern)
        self._at = 0
        self._behind = 0  # the depth in groups of look-behind
        self._depth = 0
        self._folds = False  # (?i)
        self._dot_all = False  # (?s)
        self._not_evaluable = False

    def parse(self) -> RegexNode:
        node = self._choice()
        if self._at < len(self._pattern):
            raise self._error("Unmatched closing ')'", self._at - 1)
        if self._not_evaluable:
            raise NotEvaluable
        return node

    def _error(self, description: str, index: int) -> PatternSyntaxError:
        return PatternSyntaxError(description, index, self._given)

    def _peek(self) -> str:
        return self._pattern[self._at : self._at + 1]

    def _next(self) -> str:
        found = self._peek()
        self._at += 1
        return found

    def _comes(self, test: Test) -> bool:
        """Return whether the next character passes a test."""
        return self._at < len(self._pattern) and test(self._pattern[self._at])

    def _takes(self, text: str) -> bool:
        """Skip `text` if it comes next, and return whether it did."""
        found = self._pattern.startswith(text, self._at)
        if found:
            self._at += len(text)
        return found

    # groups

    def _choice(self) -> RegexNode:
        choices = [self._sequence()]
        while self._takes("|"):
            choices.append(self._sequence())
        return choices[0] if len(choices) == 1 else RegexChoice(choices)

    def _sequence(self) -> RegexNode:
        nodes: list[RegexNode] = []
        while self._peek() not in ("", "|", ")"):
            if (node := self._atom()) is None:
                continue
            node = self._repeated(node)
            before = nodes[-1] if nodes else None
            if isinstance(node, Literal) and isinstance(before, Literal):
                nodes[-1] = Literal(before.text + node.text)
            else:
                nodes.append(node)
        return nodes[0] if len(nodes) == 1 else Chain(nodes)

    def _atom(self) -> RegexNode | None:
        """Return the next atom, or None for a change of flags."""
        at, character = self._at, self._next()
        if character == "(":
            return self._group()
        if character == "[":
            return OneOf(self._class())
        if character == "\\":
            return self._escape()
        if character in "*+?":
            raise self._error(f"Dangling meta character '{character}'", at)
        if character == "{":
            if not self._comes(DIGIT):
                raise self._error("Illegal repetition", at + 1)
            self._at, self._not_evaluable = at, True  # Java repeats the empty pattern
            return Chain(())
        if character == ".":
            return OneOf((lambda _: True) if self._dot_all else DOT)
        if character == "^":
            return START
        return LAST if character == "$" else self._literal(character)

    def _literal(self, character: str) -> RegexNode:
        repeats = self._comes(one_of("*+?{"))
        return OneOf(self._folded(one_of(character))) if repeats or self._folds else Literal(character)

    def _folded(self, test: Test) -> Test:
        return any_case(test) if self._folds else test

    def _group(self) -> RegexNode | None:
        flags, behind = (self._folds, self._dot_all), self._behind
        self._behind += self._pattern.startswith(("?<=", "?<!"), self._at)
        wrap = self._opening() if self._takes("?") else _itself
        if wrap is None:
            return None
        self._depth += 1
        if self._depth > DEEPEST:
            raise NotEvaluable
        node = wrap(self._choice())
        self._depth -= 1
        if not self._takes(")"):
            raise self._error("Unclosed group", len(self._pattern))
        (self._folds, self._dot_all), self._behind = flags, behind
        return node

    def _opening(self) -> Callable[[RegexNode], RegexNode] | None:
        """Return the kind of a group that begins with `(?`, or None for a change of flags."""
        for text, kind in _GROUPS.items():
            if self._takes(text):
                return kind
        if self._takes("<"):
            self._name()
            return _itself
        return self._flags()

    def _name(self) -> None:
        character = self._next()
        if not character or not ALPHA(character):
            raise self._error("capturing group name does not start with a Latin letter", self._at - 1)
        while self._comes(ALNUM):
            self._at += 1
        if not self._takes(">"):
            raise self._error("named capturing group is missing trailing '>'", self._at)

    def _flags(self) -> Callable[[RegexNode], RegexNode] | None:
        sets = True
        while (flag := self._next()) not in (":", ")", ""):
            if flag == "-":
                sets = False
            elif flag == "i":
                self._folds = sets
            elif flag == "s":
                self._dot_all = sets
            elif flag in "dmuxU":
                self._not_evaluable = True
            else:
                kind = "group type" if flag in "$@" else "inline modifier"
                raise self._error(f"Unknown {kind}", self._at - 1)
        if not flag:
            raise self._error("Unknown inline modifier", len(self._pattern))
        return _itself if flag == ":" else None

    # quantifiers

    def _repeated(self, node: RegexNode) -> RegexNode:
        if not self._comes(one_of("*+?{")):
            return node
        low, high, kind = self._quantifier()
        if max(low, high or 0) > MOST_REPEATS or (self._behind and (high is None or not isinstance(node, OneOf))):
            self._not_evaluable = True  # Java has rules of its own for the length of look-behind
        while self._peek() == "{":  # a quantifier of a quantifier
            self._quantifier()
            self._not_evaluable = True
        return Repeat(node, low, high, kind)

    def _quantifier(self) -> tuple[int, int | None, str]:
        low, high = self._bounds()
        return low, high, self._next() if self._comes(one_of("+?")) else ""

    def _bounds(self) -> tuple[int, int | None]:
        character = self._next()
        if character != "{":
            return (1 if character == "+" else 0), (1 if character == "?" else None)
        if not self._comes(DIGIT):
            raise self._error("Illegal repetition", self._at)
        low = self._number()
        high: int | None = low
        if self._takes(","):
            high = self._number() if self._comes(DIGIT) else None
        if not self._takes("}"):
            raise self._error("Unclosed counted closure", self._at)
        if high is not None and high < low:
            raise self._error("Illegal repetition range", self._at - 1)
        return low, high

    def _number(self) -> int:
        begin = self._at
        while self._comes(DIGIT):
            self._at += 1
        number = int(self._pattern[begin : self._at][:10])
        if number >= 2**31:
            raise self._error("Illegal repetition range", self._at)
        return number

    # escapes

    def _escape(self) -> RegexNode:
        at, character = self._at, self._peek()
        if character in _EDGES and not self._pattern.startswith("b{", at):
            self._at += 1
            return _EDGES[character]
        for text in ("b{g}", "G", "R", "X", "k", *_REFERENCES):  # edges of graphemes, back references, ...
            if self._takes(text):
                if text == "k":
                    self._at = self._pattern.find(">", at) + 1 or len(self._pattern)
                self._not_evaluable = True
                return START
        return OneOf(self._escaped())

    def _escaped(self) -> Test:
        """Return the characters of an escape, in a class or outside."""
        at, character = self._at, self._next()
        if not character:
            raise self._error("Unexpected internal error", len(self._pattern))
        if character in "pP":
            test = self._property()
            return test if character == "p" else not_(test)
        if character.lower() in CLASSES:
            test = CLASSES[character.lower()]
            return test if character.islower() else not_(test)
        return self._folded(one_of(self._escaped_character(character, at)))

    def _escaped_character(self, character: str, at: int) -> str:
        if character in CONTROLS:
            return CONTROLS[character]
        if character == "x" and self._takes("{"):
            digits, mark, _ = self._pattern[self._at :].partition("}")
            self._at += len(digits) + 1
            code = _hexadecimal(digits) if mark else None
            if code is None or code > 0x10FFFF:
                raise self._error("Unclosed hexadecimal escape sequence", self._at - 1)
            return chr(code)
        if character in "xu":
            size = 2 if character == "x" else 4
            begin = self._at
            while self._at - begin < size:
                if not self._comes(POSIX["XDigit"]):
                    kind = "hexadecimal" if character == "x" else "Unicode"
                    raise self._error(f"Illegal {kind} escape sequence", self._at)
                self._at += 1
            return chr(int(self._pattern[begin : self._at], 16))
        if character == "0":
            return self._octal()
        if character == "c":
            if not self._peek():
                raise self._error("Illegal control escape sequence", at)
            return chr(ord(self._next()) ^ 64)
        if ALPHA(character):
            if character == "N":
                raise NotEvaluable
            raise self._error("Illegal/unsupported escape sequence", at)
        return character

    def _octal(self) -> str:
        begin = self._at
        while self._at - begin < 3 and self._comes(between("0", "7")):
            if self._at - begin == 2 and self._pattern[begin] > "3":
                break
            self._at += 1
        if begin == self._at:
            raise self._error("Illegal octal escape sequence", self._at)
        return chr(int(self._pattern[begin : self._at], 8))

    def _property(self) -> Test:
        if self._takes("{"):
            name, mark, _ = self._pattern[self._at :].partition("}")
            self._at += len(name) + 1
            if not mark:
                raise self._error("Unclosed character family", len(self._pattern))
            if not name:
                raise self._error("Empty character family", self._at - 1)
        else:
            name = self._next() or "\0"
        test = POSIX.get(name) or category(name)
        if name.startswith(("Is", "In", "java")) or "=" in name or name in ("L1", "LC", "LD", "all"):
            raise NotEvaluable
        if test is None:
            raise self._error(f"Unknown character property name {{{name}}}", self._at - 1)
        if self._folds and name in _CASED:
            raise NotEvaluable
        return test

    # classes

    def _class(self) -> Test:
        """Return the characters of a class, behind its opening bracket."""
        negative = self._takes("^")
        parts: list[Test] = []
        whole: Test | None = None
        first = True
        while not (self._peek() == "]" and not first):
            if not self._peek():
                raise self._error("Unclosed character class", len(self._pattern) - 1)
            first = False
            if self._takes("&&"):
                if not parts and whole is None:
                    raise NotEvaluable  # Java has rules of its own for an intersection with nothing
                whole, parts = _and(whole, parts), []
                continue
            parts.append(self._part())
        self._at += 1
        if whole is not None and not parts:
            raise NotEvaluable
        found = _and(whole, parts)
        return not_(found) if negative else found

    def _part(self) -> Test:
        """Return the next characters of a class: a range, a nested class or an escape."""
        character = self._next()
        if character == "[":
            self._depth += 1
            if self._depth > DEEPEST:
                raise NotEvaluable
            found = self._class()
            self._depth -= 1
            return found
        if character == "\\":
            if self._comes(one_of(_SEVERAL)):
                return self._escaped()
            character = self._escaped_end()
        if self._peek() != "-" or self._pattern[self._at + 1 : self._at + 2] in ("]", "["):
            return self._folded(one_of(character))
        self._at += 1
        last = self._next()
        if last == "\\":
            last = self._escaped_end()
        if not last or last < character:
            raise self._error("Illegal character range", self._at - 1)
        return self._folded(between(character, last))

    def _escaped_end(self) -> str:
        """Return the character of an escape that is an end of a range, or alone."""
        at, character = self._at, self._next()
        if not character:
            raise self._error("Unclosed character class", len(self._pattern))
        if character in _SEVERAL:
            raise self._error("Illegal character range", self._at - 1)
        if character in _REFERENCES:
            raise self._error("Illegal/unsupported escape sequence", at)
        return self._escaped_character(character, at)


def _unquoted(found: re.Match[str]) -> str:
    r"""Return the characters of \Q...\E as escapes, as Java reads a quotation first."""
    if not found[0].startswith("\\Q"):
        return found[0]
    return "".join(each if ALPHA(each) or not each.isascii() else _escape_of(each) for each in found[1])


def _escape_of(character: str) -> str:
    return f"\\x{ord(character):02x}" if DIGIT(character) else f"\\{character}"


def _and(whole: Test | None, parts: list[Test]) -> Test:
    found = either(parts)
    return found if whole is None else both(whole, found)


def _hexadecimal(digits: str) -> int | None:
    return int(digits, 16) if digits and all(map(POSIX["XDigit"], digits)) else None


def _itself(node: RegexNode) -> RegexNode:
    return node


_GROUPS: Mapping[str, Callable[[RegexNode], RegexNode]] = {
    ":": _itself,
    "=": lambda node: RegexLook(node, behind=False, negative=False),
    "!": lambda node: RegexLook(node, behind=False, negative=True),
    ">": Atomic,
    "<=": lambda node: RegexLook(node, behind=True, negative=False),
    "<!": lambda node: RegexLook(node, behind=True, negative=True),
}
_EDGES: Mapping[str, RegexNode] = {"A": START, "z": END, "Z": LAST, "b": WORD_EDGE, "B": NO_WORD_EDGE}
