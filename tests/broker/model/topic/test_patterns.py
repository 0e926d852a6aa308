"""Patterns of topic names: what RE2J and java.util.regex accept and match, as measured with RE2J 1.8 and Java 17."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pulsarium.broker.model.topic.java_regex import NotEvaluable, RegexWork, full_match
from pulsarium.broker.model.topic.java_syntax import parse
from pulsarium.broker.model.topic.patterns import JDK, RE2J, PatternError, TopicPattern, WrongDomain, expression

FALLBACK = "RE2J_WITH_JDK_FALLBACK"
PLENTY = 1_000_000


def java(pattern: str, text: str) -> bool:
    return full_match(parse(pattern), text, RegexWork(PLENTY))


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        (r"(?!a).*", "b b1 .", "a a1"),
        (r".*(?<!DLQ)", "a DL", "a-DLQ DLQ"),
        (r"(?!.*-DLQ).*", "a b1", "b-DLQ b-DLQ1"),
        (r"a(?=b)\w+", "ab abc", "a ac"),
        (r"\w+(?<=ab)c", "abc xabc", "ac abd"),
        (r"(?<=a{1,2})b|ab", "ab", "b aab"),
        (r"[ab]\p{Digit}.*", "a1 b12", "c1 ab"),
        (r"[a-b]*+1", "1 ab1", "ab a11"),
        (r"a*+a", "", "a aa"),
        (r"(a|ab)*+c", "aac c", "abc"),
        (r"(?>a|ab)c", "ac", "abc"),
        (r"(?:ab){2,3}", "abab ababab", "ab abababab"),
        (r"(a|b){0,2}+b", "abb", "bb b a"),
        (r"a{2}+", "aa", "a aaa"),
        (r"(?i)a\p{Alpha}B", "AxB aZb", "a1b"),
        (r"(?i:a)b", "Ab ab", "aB"),
        (r"[a-z&&[^b]]+", "ac", "ab A"),
        (r"[a[1-3]]+", "a12", "b 4"),
        (r"[^a[b]]", "c", "a b"),
        (r"[]a]+", "] a]", "b"),
        (r"[a\-z\]]+", "a-] z", "b"),
        (r"[-\d]+", "-1", "a"),
        (r"\Qa.b\E+", "a.b a.bb", "aab a.ba.b"),
        (r"\Q1\E2", "12", "2"),
        (r"\x41\u0042\x{43}\0104", "ABCD", "ABC"),
        (r"\bab\b", "ab", "a"),
        (r"a\B\w", "ab", "a"),
        (r"^ab$", "ab", "xab"),
        (r"\Aab\Z", "ab", "b"),
        (r"\p{Upper}\p{Lower}\p{Punct}", "Ab-", "ab- AbC"),
        (r"\P{L}\p{Lu}\pN", "1A2", "aA2 1a2"),
        (r"\H\V\S\W\D", "ab1-c", "abcde"),
        (r"(?<name>a)|(?s).b(?-s)", "a ab", "b"),
        (r"a??b*?", "ab a bb", "ba"),
        (r"|a", "a", "b"),
    ],
)
def test_patterns_match_as_in_java(pattern: str, matching: str, others: str) -> None:
    assert [text for text in matching.split() if not java(pattern, text)] == []
    assert [text for text in others.split() if java(pattern, text)] == []


def test_an_end_of_line_before_the_end_of_a_text_is_no_end() -> None:
    assert [java(f"a(?=${end}).*", f"a{end}") for end in ("\n", "\r\n", "\u2028")] == [False] * 3
    assert java("a(?=$)\\n", "a\n")
    assert java("(?s)a(?=.).", "a\n")
    assert not java("a(?=.).", "a\n")


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("(ab", "Unclosed group near index 3\n(ab"),
        ("ab)", "Unmatched closing ')' near index 1\nab)\n ^"),
        (")", "Unmatched closing ')'\n)"),
        ("[ab", "Unclosed character class near index 2\n[ab\n  ^"),
        ("*a", "Dangling meta character '*' near index 0\n*a\n^"),
        ("a?+?", "Dangling meta character '?' near index 3\na?+?\n   ^"),
        ("a{2", "Unclosed counted closure near index 3\na{2"),
        ("a{2,1}", "Illegal repetition range near index 5\na{2,1}\n     ^"),
        ("a{,3}", "Illegal repetition near index 2\na{,3}\n  ^"),
        ("{a}", "Illegal repetition near index 1\n{a}\n ^"),
        (r"\q", "Illegal/unsupported escape sequence near index 1\n\\q\n ^"),
        (r"[\1]", "Illegal/unsupported escape sequence near index 2\n[\\1]\n  ^"),
        (r"\p{Foo}", "Unknown character property name {Foo} near index 6\n\\p{Foo}\n      ^"),
        (r"\p{L", "Unclosed character family near index 4\n\\p{L"),
        ("[b-a]", "Illegal character range near index 3\n[b-a]\n   ^"),
        (r"[a-\d]", "Illegal character range near index 4\n[a-\\d]\n    ^"),
        ("a\\", "Unexpected internal error near index 2\na\\"),
        ("(?P<n>a)", "Unknown inline modifier near index 2\n(?P<n>a)\n  ^"),
        ("(?$a)", "Unknown group type near index 2\n(?$a)\n  ^"),
        ("(?", "Unknown inline modifier near index 2\n(?"),
        ("(?<1>a)", "capturing group name does not start with a Latin letter near index 3\n(?<1>a)\n   ^"),
        ("(?<n", "named capturing group is missing trailing '>' near index 4\n(?<n"),
        (r"\x4g", "Illegal hexadecimal escape sequence near index 3\n\\x4g\n   ^"),
        (r"\u00g", "Illegal Unicode escape sequence near index 4\n\\u00g\n    ^"),
        (r"\0", "Illegal octal escape sequence near index 2\n\\0"),
        (r"\c", "Illegal control escape sequence near index 1\n\\c\n ^"),
    ],
)
def test_a_wrong_pattern_has_the_text_of_java(pattern: str, text: str) -> None:
    with pytest.raises(PatternError) as raised:
        expression(pattern, JDK)
    assert (raised.value.java, str(raised.value)) == ("java.util.regex.PatternSyntaxException", text)


@pytest.mark.parametrize(
    "pattern",
    [
        r"(a)\1",
        r"(?<n>a)\k<n>",
        r"(?x)a (?=b)",
        r"\p{IsGreek}",
        r"\p{javaLowerCase}",
        r"\R",
        r"a{2}{3}",
        r"(?<=ab*)c",
        r"a{3000}(?=b)",
        r"[a-z&&]",
        r"\b{g}",
        "(" * 60 + ")" * 60,
    ],
)
def test_what_only_java_can_evaluate_is_not_evaluated(pattern: str) -> None:
    with pytest.raises(NotEvaluable):
        expression(pattern, JDK)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("(?!a).*", "invalid or unsupported Perl syntax: `(?!`"),
        ("a*+", "invalid nested repetition operator: `*+`"),
        (r"\p{Digit}", r"invalid character class range: `\p{Digit}`"),
        ("(ab", "missing closing ): `(ab`"),
        ("ab)", "regexp/syntax: internal error: `stack underflow`"),
        ("[ab", "missing closing ]: `[ab`"),
        ("*a", "missing argument to repetition operator: `*`"),
        ("a{1001}", "invalid repeat count: `{1001}`"),
        ("a\\", "trailing backslash at end of expression"),
    ],
)
def test_re2j_alone_refuses_what_it_cannot_evaluate(pattern: str, text: str) -> None:
    with pytest.raises(PatternError) as raised:
        expression(pattern, RE2J)
    assert raised.value.java == "com.google.re2j.PatternSyntaxException"
    assert str(raised.value) == f"error parsing regexp: {text}"


@pytest.mark.parametrize(("implementation", "matches"), [(RE2J, True), (FALLBACK, True), (JDK, False)])
def test_the_setting_chooses_who_reads_a_pattern_that_both_read(implementation: str, matches: bool) -> None:
    """RE2J reads [a&&b] as a class of three characters, and Java as an intersection."""
    assert expression("[a&&b]", implementation)("a", RegexWork(PLENTY)) is matches


@pytest.mark.parametrize(
    ("pattern", "matches"),
    [
        ("persistent://t/n/a.*", True),
        ("non-persistent://t/n/a.*", True),
        ("^persistent://t/n/a.*", True),
        ("(?:persistent://t/n/a.*)", True),
        ("persistent://t/n/a.*://ignored", True),
        ("t/n/a1", True),
        ("t/n/a1-partition-0", False),
        ("a1", False),
    ],
)
def test_the_domain_of_a_pattern_does_not_count(pattern: str, matches: bool) -> None:
    assert TopicPattern(pattern, FALLBACK).matches("persistent://t/n/a1-partition-0", RegexWork(PLENTY)) is matches


def test_a_pattern_of_another_domain_is_refused() -> None:
    with pytest.raises(WrongDomain, match=r"^Does not support topic domain: foo$") as raised:
        TopicPattern("foo://t/n/a", FALLBACK)
    assert raised.value.java == "java.lang.IllegalArgumentException"


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("(?=((a*)*)*b)a*", "a" * 400),
        ("(?!(.*){50}x)(((((.*)*)*)*)*)*", "a" * 1000),
        ("(?=.*.*.*.*.*.*x).*", "a" * 1000),
        ("(?=a{0,400}a{0,400}a{0,400}b).*", "a" * 2000),
        ("(?<=.{1,900}.{1,900})x|.*(?<=a{0,900}b{0,900})y", "a" * 2000),
    ],
)
def test_too_much_work_ends_early(pattern: str, text: str) -> None:
    with pytest.raises(NotEvaluable):
        full_match(parse(pattern), text, RegexWork(20_000))


@pytest.mark.parametrize("pattern", ["(?=(a|a)*b)a*", "(?=(a+)+b)a*", "(?=(a|aa)+b)a*", "(a*)*+b", "(?>(a*)*)b"])
def test_patterns_on_which_backtracking_takes_for_ever_take_little_work(pattern: str) -> None:
    assert not full_match(parse(pattern), "a" * 60, RegexWork(20_000))


ATOMS = st.sampled_from(["a", "b", ".", "[ab]", "[^a]", r"\w", r"\bA?", "^", "$", r"\.", "ab", "(?i:a)"])
PATTERNS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda two: f"({two[0]}|{two[1]})"),
        st.tuples(st.sampled_from(["(?=", "(?!", "(?:"]), inner).map(lambda parts: f"{parts[0]}{parts[1]})"),
        st.tuples(ATOMS.filter(str.isalpha), st.sampled_from(["*", "+?", "{1,2}", "??"])).map("".join),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "*?", "{0,2}", "{2}"])).map(lambda p: f"(?:{p[0]}){p[1]}"),
    ),
    max_leaves=8,
)


@settings(max_examples=300)
@given(PATTERNS, st.text("abA.", max_size=6))
def test_pythons_backtracking_matches_the_same(pattern: str, text: str) -> None:
    assert java(pattern, text) == (re.fullmatch(pattern, text) is not None)
