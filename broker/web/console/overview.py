"""The overview: what the cluster does now, what moves most, and what is stuck."""

from __future__ import annotations

from typing import Any, Final

from pulsarium.broker.auth.authorization import OperationTarget, of_topic
from pulsarium.broker.auth.needs import ANYBODY, SUPERUSER
from pulsarium.broker.net.slices import Slice
from pulsarium.broker.web.console.facts import facts_of
from pulsarium.broker.web.console.listing import Query
from pulsarium.broker.web.console.samples import ALL, STEPS
from pulsarium.broker.web.console.stuck import SHOWN, causes
from pulsarium.broker.web.console.topics import GET_STATS, counts_of, number, parts_of, rows_of
from pulsarium.broker.web.console.watch import watch_of
from pulsarium.broker.web.http.call import Call
from pulsarium.broker.web.http.errors import AdminError
from pulsarium.broker.web.http.live import shown
from pulsarium.broker.web.http.permission import check_target
from pulsarium.broker.web.http.registry import route
from pulsarium.broker.web.http.reply import HttpReply, json_reply
from pulsarium.proto.errors import InvalidTopicName
from pulsarium.proto.topic_name import TopicName

BUSIEST: Final = 8
SHOWN_EVENTS: Final = 100
RATES: Final = {"in": 0, "bytesIn": 1, "out": 2, "bytesOut": 3, "redelivered": 4}
GAUGES: Final = {"backlog": 6, "unacked": 7, "storage": 8}
"""The fields of a sample by their names in an answer."""


Json = dict[str, Any]


@route("GET", "/pulsarium/overview")
async def get_overview(call: Call) -> HttpReply:
    """Return facts about the broker, its rates, the busiest topics, what is stuck, and the latest events.

    With Accept: text/event-stream, send the answer again when it changes.
    """
    return await shown(call, lambda: _overview(call))


async def _overview(call: Call) -> Json:
    broker, slice_ = call.broker, Slice()
    watch = watch_of(broker)
    samples, listing = watch.samples, watch.listing
    await samples.catch_up(slice_)
    counts = counts_of(await listing.find(Query(), slice_))
    rows = await listing.rows(slice_)
    busiest = [rows[name] for name in await listing.busiest(BUSIEST, slice_) if name in rows]
    stuck = await causes(await listing.late(slice_), watch.waiting, slice_)
    rates = samples.total_rates
    return {
        **await facts_of(broker, slice_),
        **counts,
        "now": {name: rates[at] for name, at in RATES.items()}
        | {name: samples.total[at] for name, at in GAUGES.items()},
        "busiest": await rows_of(broker, busiest, watch, slice_),
        "stuck": stuck[:SHOWN],
        "stuckCount": len(stuck),
        "events": watch.events.latest(SHOWN_EVENTS),
    }


@route("GET", "/pulsarium/samples", needs=ANYBODY)
async def get_samples(call: Call) -> HttpReply:
    """Return samples over time: ?topic= and ?subscription=, or of the cluster; ?step=1 or 10 seconds; ?after= in ms.

    Rates are a second. The samples of a partitioned or scalable topic are the sum of its parts.
    """
    broker, slice_ = call.broker, Slice()
    step = number(call, "step", 1)
    if step not in STEPS:
        raise AdminError(400, f"step is {step}; it must be one of {', '.join(map(str, STEPS))} seconds")
    after = number(call, "after", 0) // (1000 * step)
    topic, subscription = call.query.get("topic"), call.query.get("subscription")
    if topic is None and subscription is not None:
        raise AdminError(400, "subscription: name its topic too")
    name = None if topic is None else _name(topic)
    if name is None:
        check_target(call, SUPERUSER, OperationTarget(""))
    else:
        check_target(call, GET_STATS, of_topic(name))
    samples = watch_of(broker).samples
    await samples.catch_up(slice_)
    if name is None:
        first, columns = await samples.series([ALL], step, slice_, after=after)
    else:
        names = [*parts_of(broker, name)] or [str(name)]
        first, columns = await samples.series(names, step, slice_, after=after)
        if subscription is not None:
            came = columns
            keys = [(name, subscription) for name in names]
            first, columns = await samples.series(keys, step, slice_, after=after)
            for field in (RATES["in"], RATES["bytesIn"], GAUGES["storage"]):
                columns[field] = came[field][: len(columns[field])]
    times = [slot * step * 1000 for slot in range(first, first + len(columns[0]))]
    return json_reply(
        {
            "stepMs": step * 1000,
            "startMs": times[0] if times else None,
            "endMs": times[-1] if times else None,
            "times": times,
            **{name: [round(count / step, 1) for count in columns[at]] for name, at in RATES.items()},
            **{name: columns[at] for name, at in GAUGES.items()},
        }
    )


def _name(topic: str) -> TopicName:
    try:
        return TopicName.parse(topic)
    except InvalidTopicName as error:
        raise AdminError(412, str(error)) from None
