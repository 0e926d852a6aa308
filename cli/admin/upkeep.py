"""The commands of `topics` for what happens to a topic's data: unload, truncate, terminate, compact, offload."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine
from typing import Any

import click

from pulsarium.cli.admin.api import Api
from pulsarium.cli.admin.command import Command, Values, option
from pulsarium.cli.admin.errors import AdminError
from pulsarium.cli.admin.messages import TOPIC_ARGUMENT, of_topic
from pulsarium.cli.admin.output import value
from pulsarium.cli.admin.values import BYTES, POSITION
from pulsarium.rest.message_ids import Place
from pulsarium.rest.stats import LedgerInfo, LongRunningStatus
from pulsarium.rest.topics import Topics


def terminated(data: Any, values: Values) -> str:
    return f"Topic successfully terminated at {position_of(data)}"


def position_of(data: Any) -> str:
    """Where a topic ended, in pulsar-admin's words."""
    return f"{data['ledgerId']}:{data['entryId']}:{data.get('partitionIndex', -1)}"


def _progress(ask: Callable[[Api, Values], Coroutine[Any, Any, LongRunningStatus]], noun: str, doing: str) -> Command:
    """compaction-status and offload-status: the state in words; with --wait-complete once it is over."""

    async def run(api: Api, values: Values) -> LongRunningStatus:
        while True:
            status = await ask(api, values)
            if status["status"] != "RUNNING" or not values.wait_complete:
                break
            time.sleep(1)  # noqa: ASYNC251 - there is no loop
        if status["status"] == "ERROR":
            click.echo(f"Error in {noun.lower()}")
            raise AdminError(f"Error {doing}: {status.get('lastError') or ''}")
        return status

    def show(data: LongRunningStatus, values: Values) -> str:
        if data["status"] == "NOT_RUN":
            return f"{noun} has not been run for {values.topic} since broker startup"
        return f"{noun} is currently running" if data["status"] == "RUNNING" else f"{noun} was a success"

    wait = option("--wait-complete", "-w", flag=True, help="Wait until it is over.")
    what = f"Show how {noun.lower()} of a topic goes."
    return Command(f"{noun.lower()}-status", what, run, (TOPIC_ARGUMENT, wait), show)


COMPACTION_STATUS = _progress(lambda api, v: Topics(api).compaction_status(v.topic), "Compaction", "compacting")


async def _offload(api: Api, values: Values) -> Any:
    stats = await Topics(api).get_internal_stats(values.topic)
    if not stats["ledgers"]:
        raise AdminError("Topic doesn't have any data")
    # A ledger that is still open has its size elsewhere.
    stats["ledgers"][-1]["size"] = stats["currentLedgerSize"]
    first = _first_to_keep(stats["ledgers"], values.size_threshold)
    if first is None:
        return None
    await Topics(api).trigger_offload(values.topic, Place(first, 0))
    return {"ledgerId": first, "entryId": 0}


def _first_to_keep(ledgers: list[LedgerInfo], threshold: int) -> int | None:
    """The ledger before which all goes, so that at most `threshold` bytes stay; None if nothing has to go."""
    kept = 0
    first = ledgers[-1]["ledgerId"]
    for ledger in reversed(ledgers):
        kept += ledger["size"]
        if kept > threshold:
            return first
        first = ledger["ledgerId"]
    return None


def _offloaded(data: Any, values: Values) -> str:
    if data is None:
        return "Nothing to offload"
    return f"Offload triggered for {values.topic} for messages before {data['ledgerId']}:0:-1"


async def _compact(api: Api, values: Values) -> str:
    await Topics(api).trigger_compaction(values.topic)
    return f"Topic compaction requested for {values.topic}"


UNLOAD = of_topic.does("unload", Topics.unload, "Close a topic; clients look it up again.")
TRUNCATE = of_topic.does("truncate", Topics.truncate, "Drop all data of a topic.")
TERMINATE = of_topic.shows(
    "terminate", Topics.terminate_topic, "End a topic: nothing more is accepted.", show=terminated
)
COMPACT = Command("compact", "Compact a topic: keep the last message of each key.", _compact, (TOPIC_ARGUMENT,), value)

COMMANDS = (
    TRUNCATE,
    UNLOAD,
    TERMINATE,
    COMPACT,
    COMPACTION_STATUS,
    Command(
        "offload",
        "Move old ledgers to another storage. An emulator has none.",
        _offload,
        (
            TOPIC_ARGUMENT,
            option("--size-threshold", "-s", type=BYTES, required=True, help="How much stays, like 10M or 4G."),
        ),
        _offloaded,
    ),
    _progress(lambda api, v: Topics(api).offload_status(v.topic), "Offload", "offloading"),
    of_topic.shows(
        "get-backlog-size",
        Topics.get_backlog_size_by_message_id,
        "Show how many bytes there are after a message.",
        option("--messageId", "-m", type=POSITION, default="-1:-1", help="The message: ledgerId:entryId."),
        show=value,
    ),
    of_topic.does("trim-topic", Topics.trim_topic, "Drop the ledgers that retention does not keep."),
)
