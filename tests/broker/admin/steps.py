"""Recorded calls as tables: what is sent, what a broker answers."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from tests.broker.admin.rest import NOTHING, Answer, Rest

EMPTY = ""
PAGE = '{\n"servlet":'  # the beginning of an error page of the web server


class Text(NamedTuple):
    """A body that is no JSON, or the beginning of one."""

    text: str


class Reason(NamedTuple):
    """Pulsar's own error, from its beginning."""

    text: str


class Step(NamedTuple):
    """One call: `answer` is JSON, EMPTY, or what the body begins with."""

    call: str  # GET /admin/...
    status: int
    answer: Any = EMPTY
    value: Any = NOTHING


async def play(rest: Rest, *steps: Step) -> None:
    """Make the calls one after the other; name the first that is answered otherwise."""
    for number, step in enumerate(steps, 1):
        method, _, url = step.call.partition(" ")
        answer = await rest.call(method, url, step.value)
        assert (answer.status, found(answer, step.answer)) == (step.status, expected(step.answer)), (number, step)


def found(answer: Answer, wanted: Any) -> Any:
    """Return as much of the body as the step says."""
    if isinstance(wanted, Reason):
        return answer.json["reason"][: len(wanted.text)]
    if isinstance(wanted, Text):
        return answer.body.decode()[: len(wanted.text)]
    return json.loads(answer.body) if answer.body else EMPTY


def expected(wanted: Any) -> Any:
    return wanted.text if isinstance(wanted, (Reason, Text)) else wanted
