"""Evaluate regular expressions of java.util.regex without backtracking.

RE2 reads most patterns of topics. This module evaluates others that Java reads: lookaround, possessive quantifiers,
atomic groups and Java's classes. A node returns all positions at which a match of it may end, in the order in which
Java would try them. Each pair of node and start is evaluated once, so the work is bounded, unlike in Java and in `re`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence

from pulsarium.broker.model.topic.java_characters import LINE_ENDS, WORD, Test

Ends = Sequence[int]


class NotEvaluable(Exception):
    """A pattern that cannot be evaluated here, because it needs backtracking or too much work."""


class RegexWork:
    """The work that an evaluation may still do, in positions that its nodes return."""

    __slots__ = ("left",)

    def __init__(self, most: int) -> None:
        self.left = most

    def spend(self, count: int) -> None:
        """Take `count` from the work. Raise `NotEvaluable` when nothing is left."""
        self.left -= count
        if self.left < 0:
            raise NotEvaluable


class RegexMatching:
    """An evaluation of a pattern over a text."""

    __slots__ = ("_known", "text", "work")

    def __init__(self, text: str, work: RegexWork) -> None:
        self.text = text
        self.work = work
        self._known: dict[tuple[RegexNode, int], Ends] = {}

    def ends(self, node: RegexNode, start: int) -> Ends:
        """Return the positions at which a match of `node` that begins at `start` may end, the preferred one first."""
        if node.is_quick:
            return node.ends(self, start)
        found = self._known.get((node, start))
        if found is None:
            found = self._known[node, start] = node.ends(self, start)
            self.work.spend(1 + len(found))
        return found

    def ends_of_all(self, node: RegexNode, starts: Ends) -> Ends:
        """Return the ends of matches from all these positions on, in the order of the positions."""
        if len(starts) == 1:
            return self.ends(node, starts[0])
        self.work.spend(len(starts))
        return list(dict.fromkeys(end for start in starts for end in self.ends(node, start)))


class RegexNode(ABC):
    """A part of a pattern. A match of it has `shortest` to `longest` characters; None is any number."""

    is_quick = False  # at most one end, which is cheaper to find than to remember
    shortest = 0
    longest: int | None = None

    @abstractmethod
    def ends(self, matching: RegexMatching, start: int) -> Ends:
        """Return the ends of matches from `start` on, the preferred one first."""


class OneOf(RegexNode):
    """A character that passes a test."""

    is_quick = True
    shortest = longest = 1

    def __init__(self, test: Test) -> None:
        self.test = test
        self._ascii = "".join(filter(test, map(chr, range(128))))

    def ends(self, matching: RegexMatching, start: int) -> Ends:
        return (start + 1,) if start < len(matching.text) and self.test(matching.text[start]) else ()

    def run_end(self, text: str, start: int) -> int:
        """Return where the characters from `start` on fail the test."""
        if text.isascii():
            return len(text) - len(text[start:].lstrip(self._ascii)) if self._ascii else start
        while start < len(text) and self.test(text[start]):
            start += 1
        return start


class Literal(RegexNode):
    """Characters of which no letter may have the other case."""

    is_quick = True

    def __init__(self, text: str) -> None:
        self.text = text
        self.shortest = self.longest = len(text)

    def ends(self, matching: RegexMatching, start: int) -> Ends:
        return (start + len(self.text),) if matching.text.startswith(self.text, start) else ()


class Edge(RegexNode):
    """A position that passes a test, such as the end of the text."""

    is_quick = True
    longest = 0

    def __init__(self, test: Callable[[str, int], bool]) -> None:
        self.test = test

    def ends(self, matching: RegexMatching, start: int) -> Ends:
        return (start,) if self.test(matching.text, start) else ()


class Chain(RegexNode):
    """Nodes one after the other."""

    def __init__(self, nodes: Sequence[RegexNode]) -> None:
        self.nodes = nodes
        self.shortest = sum(node.shortest for node in nodes)
        self.longest = _sum(node.longest for node in nodes)

    def ends(self, matching: RegexMatching, start: int) -> Ends:
        found: Ends = (start,)
        for node in self.nodes:
            found = matching.ends_of_all(node, found)
            if not found:
                break
        return found


class RegexChoice(RegexNode):
    """The first of several nodes that matches, or else a later one."""

    def __init__(self, nodes: Sequence[RegexNode]) -> None:
        self.nodes = nodes
        self.shortest = min(node.shortest for node in nodes)
        lengths = [node.longest for node in nodes]
        self.longest = None if None in lengths else max(length for length in lengths if length is not None)

    def ends(self, matching: RegexMatching, start: int) -> Ends:
        return list(dict.fromkeys(end for node in self.nodes for end in matching.ends(node, start)))


class Repeat(RegexNode):
    """A node `low` to `high` times. Without `high`, as often as it matches."""

    def __init__(self, node: RegexNode, low: int, high: int | None, kind: str) -> None:
        self.node = node
        self.low = low
        self.high = high
        self.kind = kind
        self.shortest = node.shortest * low
        self.longest = None if high is None or node.longest is None else node.longest * high

    def ends(self, matching: RegexMatching, start: int) -> Ends:
        if isinstance(self.node, OneOf):
            return self._of_characters(self.node, matching.text, start)
        if self.kind == "+":
            return self._possessive(matching, start)
        found: Ends = (start,)
        for _ in range(self.low):
            found = matching.ends_of_all(self.node, found)
        return self._unbounded(matching, found) if self.high is None else self._bounded(matching, found)

    def _of_characters(self, node: OneOf, text: str, start: int) -> Ends:
        last = node.run_end(text, start)
        if self.high is not None:
            last = min(last, start + self.high)
        first = start + self.low
        if self.kind == "+":
            return (last,) if first <= last else ()
        return range(first, last + 1) if self.kind == "?" else range(last, first - 1, -1)

    def _possessive(self, matching: RegexMatching, start: int) -> Ends:
        done = 0
        while done != self.high:
            ends = matching.ends(self.node, start)
            if not ends:
                break
            done += 1
            if ends[0] == start:
                done = max(done, self.low)
                break
            start = ends[0]
        return (start,) if done >= self.low else ()

    def _unbounded(self, matching: RegexMatching, starts: Ends) -> Ends:
        """Return all positions that repetitions reach: Java tries more repetitions first, or with "?" fewer."""
        lazy = self.kind == "?"
        found: dict[int, None] = {}
        seen: set[int] = set()
        for start in starts:
            under_way = [(start, iter((start,)))]  # the first pair only leads to `start`
            while under_way:
                matching.work.spend(1)
                at, ends = under_way[-1]
                end = next(ends, None)
                if end is None:
                    under_way.pop()
                    if under_way and not lazy:
                        found[at] = None
                elif end not in seen:
                    seen.add(end)
                    if lazy:
                        found[end] = None
                    under_way.append((end, iter(matching.ends(self.node, end))))
        return list(found)

    def _bounded(self, matching: RegexMatching, starts: Ends) -> Ends:
        assert self.high is not None
        if self.high == self.low:
            return starts
        times = self.high - self.low
        return list(dict.fromkeys(end for start in starts for end in self._up_to(matching, start, times)))

    def _up_to(self, matching: RegexMatching, start: int, times: int) -> Ends:
        rounds: list[Ends] = [(start,)]
        for _ in range(times):
            found = matching.ends_of_all(self.node, rounds[-1])
            if not found or found == rounds[-1]:
                break
            rounds.append(found)
        if self.kind != "?":
            rounds.reverse()
        return list(dict.fromkeys(end for each in rounds for end in each))


class Atomic(RegexNode):
    """The preferred match of a node, without any other."""

    def __init__(self, node: RegexNode) -> None:
        self.node = node
        self.shortest, self.longest = node.shortest, node.longest

    def ends(self, matching: RegexMatching, start: int) -> Ends:
        return matching.ends(self.node, start)[:1]


class RegexLook(RegexNode):
    """A node that must match, or must not, behind a position or before it."""

    longest = 0

    def __init__(self, node: RegexNode, *, behind: bool, negative: bool) -> None:
        self.node = node
        self.behind = behind
        self.negative = negative

    def ends(self, matching: RegexMatching, start: int) -> Ends:
        if self.behind:
            first = 0 if self.node.longest is None else max(0, start - self.node.longest)
            begins = range(start - self.node.shortest, first - 1, -1)
            found = any(start in matching.ends(self.node, begin) for begin in begins)
        else:
            found = bool(matching.ends(self.node, start))
        return (start,) if found is not self.negative else ()


def _sum(lengths: Iterable[int | None]) -> int | None:
    total = 0
    for length in lengths:
        if length is None:
            return None
        total += length
    return total


def full_match(node: RegexNode, text: str, work: RegexWork) -> bool:
    """Return whether a pattern matches the whole text. Raise `NotEvaluable` when that takes more than `work` allows."""
    return len(text) in RegexMatching(text, work).ends_of_all(node, (0,))


# positions


def _is_last(text: str, at: int) -> bool:
    """Return whether only a line terminator may follow, as Java's `$` wants."""
    rest = text[at:]
    return not rest or rest == "\r\n" or (len(rest) == 1 and rest in LINE_ENDS and text[at - 1 : at + 1] != "\r\n")


def _at_word_edge(text: str, at: int) -> bool:
    return (at > 0 and WORD(text[at - 1])) is not (at < len(text) and WORD(text[at]))


START = Edge(lambda text, at: at == 0)
END = Edge(lambda text, at: at == len(text))
LAST = Edge(_is_last)
WORD_EDGE = Edge(_at_word_edge)
NO_WORD_EDGE = Edge(lambda text, at: not _at_word_edge(text, at))
