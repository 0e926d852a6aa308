"""/lab/wait: wait until a topic or a subscription has a state."""

from __future__ import annotations

from typing import Final

import trio

from pulsarium.broker.lab.awaited import AwaitedError, awaited
from pulsarium.broker.web.http.call import Call
from pulsarium.broker.web.http.errors import AdminError
from pulsarium.broker.web.http.registry import route
from pulsarium.broker.web.http.reply import HttpReply, json_reply
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
