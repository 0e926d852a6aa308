"""One owner of arguments: what methods take is what their options, or a function, say."""

from __future__ import annotations

import inspect
from dataclasses import fields

import pytest

from pulsarium.client import Client, Producer
from pulsarium.client.arguments import arguments_of
from pulsarium.client.consumer.options import ConsumerOptions, ReaderOptions
from pulsarium.client.producer.options import ProducerOptions


def made(first: int, *, second: str = "s") -> str:
    return f"{first}{second}"


class Taker:
    @arguments_of(made)
    def take(self, text: str) -> list[str]:
        """Its own words."""
        return [text]


def test_the_method_is_given_what_was_made() -> None:
    assert Taker().take(1) == ["1s"]
    assert Taker().take(first=2, second="x") == ["2x"]
    with pytest.raises(TypeError, match="third"):
        Taker().take(1, third=2)  # type: ignore[call-arg]


def test_help_shows_the_arguments() -> None:
    assert str(inspect.signature(Taker().take)) == "(first: 'int', *, second: 'str' = 's') -> 'list[str]'"
    assert Taker.take.__doc__ == "Its own words."


@pytest.mark.parametrize(
    ("method", "options"),
    [
        (Client.create_producer, ProducerOptions),
        (Client.subscribe, ConsumerOptions),
        (Client.create_reader, ReaderOptions),
    ],
)
def test_the_client_takes_its_options(method: object, options: type) -> None:
    parameters = list(inspect.signature(method).parameters)[1:]  # type: ignore[arg-type]
    assert set(parameters) == {field.name for field in fields(options)}
    assert parameters[0] == "topic"


def test_sending_takes_what_a_draft_takes() -> None:
    for method, more in ((Producer.send, ["txn"]), (Producer.send_nowait, []), (Producer.submit, ["txn"])):
        parameters = inspect.signature(method).parameters
        assert [*parameters][1:] == ["content", *more, "options"]
        assert parameters["options"].annotation == "Unpack[MessageOptions]"
