"""/admin/v2: filters of entries."""

from __future__ import annotations

from typing import Any

import pytest

from tests.broker.admin.rest import NAMESPACES, TOPICS, Rest
from tests.broker.admin.steps import Step, Text, play

DEFAULT = f"{NAMESPACES}/public/default"
MISSING = f"{NAMESPACES}/public/missing"
TOPIC = f"{TOPICS}/t"
NO_NAMES = {"reason": "entryFilterNames can't be empty. To remove entry filters use the remove method."}


@pytest.mark.parametrize(
    ("sent", "answer"),
    [
        ({}, NO_NAMES),
        ({"entryFilterNames": ""}, NO_NAMES),
        ({"entryFilterNames": " , "}, NO_NAMES),
        ({"entryFilterNames": "a,b"}, {"reason": "Entry filter 'a' not found"}),
        ("jms", {"reason": "Entry filter 'jms' not found"}),
    ],
)
async def test_none_can_be_set(rest: Rest, sent: Any, answer: Any) -> None:
    await rest.done("PUT", TOPIC)
    for where in (DEFAULT, TOPIC, MISSING):  # the value comes before the namespace
        await play(rest, Step(f"POST {where}/entryFilters", 400, answer, sent))


async def test_none_is_shown(rest: Rest) -> None:
    await rest.done("PUT", TOPIC)
    for where in (DEFAULT, TOPIC):
        await play(
            rest,
            Step(f"GET {where}/entryFilters", 200),
            Step(f"POST {where}/entryFilters", 204),
            Step(f"POST {where}/entryFilters", 400, Text("Cannot construct instance"), 1),
            Step(f"DELETE {where}/entryFilters", 204),
            Step(f"GET {where}/entryFilters", 200),
        )
    await play(
        rest,
        Step(f"GET {TOPIC}/entryFilters?applied=true", 200, {"entryFilterNames": ""}),
        Step(f"GET {MISSING}/entryFilters", 404, {"reason": "Namespace does not exist"}),
        Step(f"DELETE {MISSING}/entryFilters", 404, {"reason": "Namespace does not exist"}),
    )
