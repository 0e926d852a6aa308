"""/lab/process: what the broker's process is made of now; whoever looks for leaks compares two answers."""

from __future__ import annotations

import gc
import threading
from collections import Counter

import trio

from pulsarium.broker.http.call import Call
from pulsarium.broker.http.registry import route
from pulsarium.broker.http.reply import Reply, json_reply


@route("GET", "/lab/process")
def get_process(call: Call) -> Reply:
    """Tasks, threads and sessions; `census=true`: also how many objects there are of each type, which takes a while."""
    found: dict[str, object] = {
        "tasks": trio.lowlevel.current_statistics().tasks_living,
        "threads": threading.active_count(),
        "sessions": sum(len(broker.sessions) for broker in call.broker.cluster.brokers),
    }
    if call.flag("census", False):
        gc.collect()
        types = Counter(f"{type(each).__module__}.{type(each).__qualname__}" for each in gc.get_objects())
        found["objects"] = dict(types.most_common())
    return json_reply(found)
