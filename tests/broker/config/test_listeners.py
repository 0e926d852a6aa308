"""advertisedListeners, with cases that the released broker has answered."""

from __future__ import annotations

import pytest

from pulsarium.broker.config.options import Listener, parse_listeners


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        (" , ", {}),
        ("internal:pulsar://h:6650", {"internal": Listener(pulsar="pulsar://h:6650")}),
        (
            "a:pulsar://h:1,a:pulsar+ssl://h:2,a:http://h:3,a:https://h:4",
            {"a": Listener("pulsar://h:1", "pulsar+ssl://h:2", "http://h:3", "https://h:4")},
        ),
        (
            " a : pulsar://h:1 , b:http://h:8080 ",
            {"a": Listener(pulsar="pulsar://h:1"), "b": Listener(http="http://h:8080")},
        ),
        ("a:pulsar://[::1]:1,", {"a": Listener(pulsar="pulsar://[::1]:1")}),
    ],
)
def test_listeners_are_read(text: str, expected: dict[str, Listener]) -> None:
    assert parse_listeners(text) == expected
    assert list(parse_listeners(text)) == list(expected)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("a:pulsar://h:1,pulsar://h:2", "'pulsar://h:2' is not name:"),
        (":pulsar://h:1", "':pulsar://h:1' is not name:"),
        ("a:h:1", "'a:h:1' is not name:"),
        ("a:ftp://h:1", "'a:ftp://h:1' is not name:"),
        ("a:pulsar://", "'a:pulsar://' is not name:"),
        ("a:pulsar://h:1,a:pulsar://h:2", "'a:pulsar://h:2' is a second pulsar URL of the listener 'a'"),
        ("a:pulsar://h:1,b:pulsar://h:1", "'b:pulsar://h:1' has the address of the listener 'a'"),
    ],
)
def test_a_wrong_listener_is_named(text: str, wrong: str) -> None:
    with pytest.raises(ValueError, match="^" + wrong.replace("+", r"\+")):
        parse_listeners(text)
