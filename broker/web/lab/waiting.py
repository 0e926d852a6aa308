"""/lab/wait and /lab/expect: wait until a topic or a subscription has a state, or exactly the expected messages."""

from __future__ import annotations

import binascii
from base64 import b64decode
from collections.abc import Callable, Mapping
from typing import Any, Final

import trio

from pulsarium.broker.cluster import Cluster
from pulsarium.broker.lab.awaited import AwaitedError, awaited
from pulsarium.broker.lab.expectations import AckedExpectation, DeliveredExpectation, Expectation, Produced
from pulsarium.broker.web.http.call import Call
from pulsarium.broker.web.http.errors import AdminError
from pulsarium.broker.web.http.registry import route
from pulsarium.broker.web.http.reply import HttpReply, done, json_reply
from pulsarium.broker.web.lab.find import MOST_PATIENCE, PATIENCE, lab_of, number

QUERY: Final = {"topic", "subscription", "state", "count", "timeout", "token"}


@route("GET", "/lab/wait")
async def wait_for_state(call: Call) -> HttpReply:
    """Wait until ?topic=&subscription= has the ?state=, with ?count= of consumers, producers or messages (1).

    Answer 408 after `timeout` seconds (30), and say what the topic or the subscription has instead. Without a
    subscription, the state is that of the topic.
    """
    query = call.query
    if query.keys() - QUERY or not query.get("topic") or not query.get("state"):
        raise AdminError(400, "pass ?topic=...&state=..., and as you need them subscription, count and timeout")
    topic, subscription, state = query["topic"], query.get("subscription") or None, query["state"]
    count = int(number(call, "count", 1, 2**31)) if "count" in query else None
    timeout = number(call, "timeout", PATIENCE, MOST_PATIENCE)
    lab = lab_of(call)
    try:
        expectation = awaited(lab.cluster, topic, subscription, state, count)
    except AwaitedError as error:
        raise AdminError(400, str(error)) from None
    with trio.move_on_after(timeout):
        await lab.changes.until(expectation.decided)
    if not expectation.decided():
        raise AdminError(408, f"not {state}: {expectation.problem()}")
    return json_reply({"topic": topic, "subscription": subscription, "state": state, "count": count})


LARGEST: Final = 64 << 20  # bytes of the expected values
UNMET: Final = 417
OF_EXPECTATION: Final = {"topic": str, "subscription": str, "state": str, "count": int, "values": list, "timeout": None}


@route("POST", "/lab/expect", largest_body=LARGEST)
async def expect_messages(call: Call) -> HttpReply:
    """Wait for {"topic": ..., "subscription": ..., "state": "produced", "delivered" or "acked", "count": N}.

    `produced` and `acked` expect exactly N messages. `values` are expected messages in base64, in place of `count`.
    `acked` without `count` expects all. Answer 417 after `timeout` seconds (5), or at once for too many messages.
    """
    asked = call.json_object("java.util.Map") or {}
    lab = lab_of(call)
    try:
        expectation, timeout = _expectation(lab.cluster, asked), _seconds(asked)
    except ValueError as error:
        raise AdminError(400, str(error)) from None
    problem = await lab.changes.problem(expectation, timeout)
    if problem is not None:
        raise AdminError(UNMET, problem)
    return done()


def _expectation(cluster: Cluster, asked: Mapping[str, Any]) -> Expectation:
    """Return the expectation of a JSON object. Raise `ValueError`, which says what is allowed."""
    kinds = ", ".join(_EXPECTED)
    for name, value in asked.items():
        kind = OF_EXPECTATION.get(name, bool)
        if kind is bool or (kind is not None and value is not None and type(value) is not kind):
            raise ValueError(f"{name} is {value!r}; an expectation has {', '.join(OF_EXPECTATION)}")
    if asked.get("state") not in _EXPECTED or not asked.get("topic"):
        raise ValueError(f"an expectation needs a topic, and a state, one of {kinds}")
    return _EXPECTED[asked["state"]](cluster, asked)


def _seconds(asked: Mapping[str, Any]) -> float:
    timeout = asked.get("timeout", 5.0)
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 <= timeout <= MOST_PATIENCE:
        raise ValueError(f"timeout is {timeout!r}; it must be a number from 0 to {MOST_PATIENCE:g}")
    return float(timeout)


def _produced(cluster: Cluster, asked: Mapping[str, Any]) -> Expectation:
    values = asked.get("values")
    if values is not None:
        return Produced(cluster, asked["topic"], [_value(each) for each in values])
    return Produced(cluster, asked["topic"], _count(asked))


def _value(text: object) -> bytes:
    try:
        return b64decode(str(text), validate=True)
    except binascii.Error as error:
        raise ValueError(f"values: each is a message in base64, not {text!r}: {error}") from None


def _delivered(cluster: Cluster, asked: Mapping[str, Any]) -> Expectation:
    return DeliveredExpectation(cluster, asked["topic"], _subscription(asked), _count(asked))


def _acked(cluster: Cluster, asked: Mapping[str, Any]) -> Expectation:
    return AckedExpectation(cluster, asked["topic"], _subscription(asked), asked.get("count"))


def _count(asked: Mapping[str, Any]) -> int:
    count: int | None = asked.get("count")
    if count is None:
        raise ValueError(f"the state {asked['state']} needs count, a number of messages")
    return count


def _subscription(asked: Mapping[str, Any]) -> str:
    subscription: str | None = asked.get("subscription")
    if not subscription:
        raise ValueError(f"the state {asked['state']} needs a subscription")
    return subscription


_EXPECTED: Final[Mapping[str, Callable[[Cluster, Mapping[str, Any]], Expectation]]] = {
    "produced": _produced,
    "delivered": _delivered,
    "acked": _acked,
}
