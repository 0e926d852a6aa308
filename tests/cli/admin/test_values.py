"""Values on the command line."""

from __future__ import annotations

import click
import pytest

from pulsarium.cli.admin import values
from pulsarium.rest.message_ids import PlainId


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0),
        ("-1", -1),
        ("+5", 5),
        ("120", 120),
        ("10s", 10),
        ("100m", 6000),
        ("3h", 10800),
        ("2D", 172800),
        ("5w", 3024000),
        ("1y", 31536000),
        ("-1m", -60),
        ("09", 9),
    ],
)
def test_durations_of_options_are_read(text: str, seconds: int) -> None:
    assert values.SECONDS.convert(text, None, None) == seconds
    assert values.MILLISECONDS.convert(text, None, None) == seconds * 1000


@pytest.mark.parametrize("text", ["", "s", "1.5h", "3x", "3 h", "1_0", "h3", "٣", "9223372036854775808"])
def test_invalid_durations_are_refused(text: str) -> None:
    with pytest.raises(click.BadParameter):
        values.SECONDS.convert(text, None, None)


@pytest.mark.parametrize(
    ("text", "size"),
    [("0", 0), ("-1", -1), ("4096", 4096), ("100K", 102400), ("10m", 10 << 20), ("16G", 16 << 30), ("3t", 3 << 40)],
)
def test_sizes_of_options_are_read(text: str, size: int) -> None:
    assert values.BYTES.convert(text, None, None) == size


@pytest.mark.parametrize("text", ["", "K", "1.5K", "10Q", "10KB"])
def test_invalid_sizes_are_refused(text: str) -> None:
    with pytest.raises(click.BadParameter):
        values.BYTES.convert(text, None, None)


@pytest.mark.parametrize("text", [str(2**31), "68y9", "69y", "2147483648s"])
def test_durations_too_long_for_the_broker_are_refused(text: str) -> None:
    with pytest.raises(click.BadParameter):
        values.INT_SECONDS.convert(text, None, None)


def test_numbers_have_their_bounds() -> None:
    assert values.INT.convert("-2147483648", None, None) == -(2**31)
    assert values.LONG.convert(str(2**63 - 1), None, None) == 2**63 - 1
    for wrong in (str(2**31), "1.0", "x", ""):
        with pytest.raises(click.BadParameter):
            values.INT.convert(wrong, None, None)


def test_positions_are_read_from_their_text() -> None:
    assert values.CURSOR_POSITION.convert("latest", None, None) == PlainId(2**63 - 1, 2**63 - 1)
    assert values.CURSOR_POSITION.convert("earliest", None, None) == PlainId(-1, -1)
    assert values.CURSOR_POSITION.convert("5:6", None, None) == PlainId(5, 6)
    assert values.POSITION.convert("-1:-1", None, None) == PlainId(-1, -1)
    for wrong in ("5", "5:", "a:b", "latest"):
        with pytest.raises(click.BadParameter):
            values.POSITION.convert(wrong, None, None)


def test_times_of_options_are_read() -> None:
    assert values.TIMESTAMP.convert("2021-06-28T16:53:08Z", None, None) == 1624899188000
    assert values.TIMESTAMP.convert("2021-06-28T16:53:08.123+02:00", None, None) == 1624891988123
    for wrong in ("", "now", "2021-06-28T16:53:08", "2021-06-28"):
        with pytest.raises(click.BadParameter):
            values.TIMESTAMP.convert(wrong, None, None)


def test_lists_and_pairs() -> None:
    assert values.split(["a,b", " c ", ",", ""]) == ["a", "b", "c"]
    assert values.split(None) == []
    assert values.split("a, b") == ["a", "b"]
    assert values.key_values(["a=b,c=d", "e=", " f = g=h"]) == {"a": "b,c=d", "e": "", "f": "g=h"}
    for wrong in ("ab", "=b"):
        with pytest.raises(click.UsageError, match="Invalid key value pair"):
            values.key_values([wrong])
