"""The commands of `topics` for a topic's data: unload, truncate, terminate, compact and offload."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine
from typing import Any

import click

from pulsarium.cli.admin.api import Api
from pulsarium.cli.admin.command import AdminCommand, Values, option
from pulsarium.cli.admin.errors import AdminError
from pulsarium.cli.admin.messages import TOPIC_ARGUMENT, of_topic
from pulsarium.cli.admin.output import value
from pulsarium.cli.admin.values import BYTES, POSITION
from pulsarium.rest.message_ids import PlainId
from pulsarium.rest.stats import LedgerInfo, LongRunningStatus
from pulsarium.rest.topics import Topics


def terminated(data: Any, values: Values) -> str:
    return f"Topic successfully terminated at {position_of(data)}"


def position_of(data: Any) -> str:
    """Return the last position of a terminated topic, as pulsar-admin prints it."""
    return f"{data['ledgerId']}:{data['entryId']}:{data.get('partitionIndex', -1)}"


def _progress(
    ask: Callable[[Api, Values], Coroutine[Any, Any, LongRunningStatus]], noun: str, doing: str
) -> AdminCommand:
    """Return the compaction-status or offload-status command. With --wait-complete, it waits for the end of the run."""

    async def run(api: Api, values: Values) -> LongRunningStatus:
        while True:
            status = await ask(api, values)
            if status["status"] != "RUNNING" or not values.wait_complete:
                break
            time.sleep(1)  # noqa: ASYNC251 - no event loop is running
        if status["status"] == "ERROR":
            click.echo(f"Error in {noun.lower()}")
            raise AdminError(f"Error {doing}: {status.get('lastError') or ''}")
        return status

    def show(data: LongRunningStatus, values: Values) -> str:
        if data["status"] == "NOT_RUN":
            return f"{noun} has not been run for {values.topic} since broker startup"
        return f"{noun} is currently running" if data["status"] == "RUNNING" else f"{noun} was a success"

    wait = option("--wait-complete", "-w", flag=True, help="Wait until the run ends.")
    what = f"Show the status of a topic's {noun.lower()}."
    return AdminCommand(f"{noun.lower()}-status", what, run, (TOPIC_ARGUMENT, wait), show)


COMPACTION_STATUS = _progress(lambda api, v: Topics(api).compaction_status(v.topic), "Compaction", "compacting")


async def _offload(api: Api, values: Values) -> Any:
    stats = await Topics(api).get_internal_stats(values.topic)
    if not stats["ledgers"]:
        raise AdminError("Topic doesn't have any data")
    # The open ledger's size is in another field.
    stats["ledgers"][-1]["size"] = stats["currentLedgerSize"]
    first = _first_to_keep(stats["ledgers"], values.size_threshold)
    if first is None:
        return None
    await Topics(api).trigger_offload(values.topic, PlainId(first, 0))
    return {"ledgerId": first, "entryId": 0}


def _first_to_keep(ledgers: list[LedgerInfo], threshold: int) -> int | None:
    """Return the first ledger to keep so that at most `threshold` bytes stay, or None when all ledgers fit."""
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


UNLOAD = of_topic.does("unload", Topics.unload, "Unload a topic; clients look it up again.")
TRUNCATE = of_topic.does("truncate", Topics.truncate, "Delete all messages of a topic.")
TERMINATE = of_topic.shows(
    "terminate", Topics.terminate_topic, "Terminate a topic, so that it accepts no more messages.", show=terminated
)
COMPACT = AdminCommand(
    "compact", "Compact a topic to the last message of each key.", _compact, (TOPIC_ARGUMENT,), value
)

COMMANDS = (
    TRUNCATE,
    UNLOAD,
    TERMINATE,
    COMPACT,
    COMPACTION_STATUS,
    AdminCommand(
        "offload",
        "Move old ledgers to tiered storage, which Pulsarium does not have.",
        _offload,
        (
            TOPIC_ARGUMENT,
            option(
                "--size-threshold",
                "-s",
                type=BYTES,
                required=True,
                help="Keep this size outside tiered storage, such as 10M or 4G.",
            ),
        ),
        _offloaded,
    ),
    _progress(lambda api, v: Topics(api).offload_status(v.topic), "Offload", "offloading"),
    of_topic.shows(
        "get-backlog-size",
        Topics.get_backlog_size_by_message_id,
        "Show the size of the backlog after a message, in bytes.",
        option("--messageId", "-m", type=POSITION, default="-1:-1", help="The message: ledgerId:entryId."),
        show=value,
    ),
    of_topic.does("trim-topic", Topics.trim_topic, "Delete the ledgers that retention does not keep."),
)
