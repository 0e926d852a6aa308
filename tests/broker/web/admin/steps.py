"""Recorded calls as tables of requests and answers."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from tests.broker.web.admin.rest import NOTHING, Answer, Rest

EMPTY = ""
PAGE = '{\n"servlet":'  # the beginning of an error page of the web server


class Text(NamedTuple):
    """A body that is not JSON, or its beginning."""

    text: str


class Reason(NamedTuple):
    """The beginning of an error of Pulsar."""

    text: str


class Step(NamedTuple):
    """A call and its answer: JSON, EMPTY, or the beginning of the body."""

    call: str  # GET /admin/...
    status: int
    answer: Any = EMPTY
    value: Any = NOTHING


async def play(rest: Rest, *steps: Step) -> None:
    """Make the calls one after the other, and fail at the first one with another answer."""
    for number, step in enumerate(steps, 1):
        method, _, url = step.call.partition(" ")
        answer = await rest.call(method, url, step.value)
        assert (answer.status, found(answer, step.answer)) == (step.status, expected(step.answer)), (number, step)


def found(answer: Answer, wanted: Any) -> Any:
    """Return the part of the body that the step compares."""
    if isinstance(wanted, Reason):
        return answer.json["reason"][: len(wanted.text)]
    if isinstance(wanted, Text):
        return answer.body.decode()[: len(wanted.text)]
    return json.loads(answer.body) if answer.body else EMPTY


def expected(wanted: Any) -> Any:
    return wanted.text if isinstance(wanted, (Reason, Text)) else wanted
