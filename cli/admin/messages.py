"""The commands of `topics` that show messages, and the one that skips messages by id."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from pulsarium.cli.admin.api import Api
from pulsarium.cli.admin.command import AdminCommand, CommandsOf, Values, argument, option
from pulsarium.cli.admin.errors import ServerError
from pulsarium.cli.admin.message import ShownMessage, messages_of, show, show_by_id
from pulsarium.cli.admin.output import value
from pulsarium.cli.admin.values import INT, LONG, TIMESTAMP, TOPIC, Parsed
from pulsarium.cli.completing import subscriptions
from pulsarium.proto.numbers import LONG_MAX
from pulsarium.rest.message_ids import PlainId
from pulsarium.rest.topics import Topics

if TYPE_CHECKING:
    from pulsarium.rest.stats import TopicInternalStats

NAMED = 5  # missing ids that a note names

Entries = dict[int, int]  # number of entries by ledger

TOPIC_ARGUMENT = argument("topic", TOPIC)
SUBSCRIPTION = option("--subscription", "-s", required=True, shell_complete=subscriptions, help="The subscription.")
of_subscription = CommandsOf(Topics, TOPIC_ARGUMENT, SUBSCRIPTION)
of_topic = CommandsOf(Topics, TOPIC_ARGUMENT)
COUNT = option("--count", "-n", type=INT, default=1, help="Show this many messages.")


def message_id(data: Any, values: Values) -> str:
    """Return a message id as Pulsar's class prints it."""
    if not isinstance(data, dict):
        return value(data)
    names = {"ledgerId": -1, "entryId": -1, "partitionIndex": -1, "batchSize": 0, "batchIndex": -1}
    return value({name: data.get(name, default) for name, default in names.items()})


async def _peek(api: Api, values: Values) -> list[ShownMessage]:
    if values.count <= 0:
        raise click.UsageError("--count: pass a number above 0")
    entries = await Topics(api).peek_messages(values.topic, values.subscription, values.count)
    return [message for entry in entries for message in messages_of(entry) if _visible(message, values)]


def _visible(message: ShownMessage, values: Values) -> bool:
    if "x-pulsar-marker-type" in message.headers and not getattr(values, "show_server_marker", False):
        return False
    if getattr(values, "transaction_isolation_level", "READ_UNCOMMITTED") == "READ_UNCOMMITTED":
        return True
    return not any(message.headers.get(f"x-pulsar-txn-{state}") == "true" for state in ("uncommitted", "aborted"))


async def _examine(api: Api, values: Values) -> list[ShownMessage]:
    return messages_of(
        await Topics(api).examine_message(values.topic, values.initial_position, values.message_position)
    )


async def _by_id(api: Api, values: Values) -> list[ShownMessage]:
    return messages_of(await Topics(api).get_messages_by_id(values.topic, values.ledger_id, values.entry_id))


def peek_command(*more: click.Option) -> AdminCommand:
    return AdminCommand(
        "peek-messages",
        "Show unacknowledged messages of a subscription without consuming them.",
        _peek,
        (TOPIC_ARGUMENT, SUBSCRIPTION, COUNT, *more),
        show,
        example="orders -s billing -n 3",
    )


BY_ID = AdminCommand(
    "get-message-by-id",
    "Show the message of an entry.",
    _by_id,
    (
        TOPIC_ARGUMENT,
        option("--ledgerId", "-l", type=LONG, required=True, help="The ledger."),
        option("--entryId", "-e", type=LONG, required=True, help="The entry in that ledger."),
    ),
    show_by_id,
    example="orders --ledgerId 12 --entryId 3",
)

LAST = of_topic.shows(
    "last-message-id", Topics.get_last_message_id, "Show the id of the last message.", show=message_id
)


def _triplet(text: str) -> PlainId:
    """Return the id in `ledgerId:entryId` or `ledgerId:entryId:batchIndex`. Raise ValueError for another text."""
    parts = text.split(":")
    if len(parts) not in (2, 3) or not all(part.isascii() and part.isdigit() for part in parts):
        raise ValueError(f"'{text}' is no message id; write ledgerId:entryId or ledgerId:entryId:batchIndex")
    ids = [int(part) for part in parts]
    if max(ids[:2]) > LONG_MAX or max(ids[2:], default=0) >= 2**31:
        raise ValueError(f"'{text}' has a number that is too large")
    return PlainId(ids[0], ids[1], batch_index=ids[2] if len(ids) == 3 else -1)


def _serialized(text: str) -> PlainId:
    """Return the id in base64 of MessageId.toByteArray. Raise ValueError for another text."""
    from pulsarium.proto.errors import InvalidMessageId
    from pulsarium.proto.message_id import MessageId

    try:
        found = MessageId.from_bytes(base64.b64decode(text, validate=True))
    except (binascii.Error, InvalidMessageId):
        raise ValueError(
            f"'{text}' is no serialized message id in base64; pass MessageId.toByteArray in base64"
        ) from None
    return PlainId(found.ledger_id, found.entry_id, batch_index=found.batch_index)


def _skipped(values: Values) -> list[PlainId]:
    """Return the ids to skip. All are sent as triplets, because a request has only one format (PIP-423)."""
    ids = [*values.message_id_triplet, *values.message_id_base64]
    if not ids:
        raise click.UsageError("Name the messages to skip with --messageId-triplet or --messageId-base64")
    return ids


async def _entries_of(api: Api, topic: str) -> Entries | None:
    """Return the number of entries in each ledger of a topic or of its partitions, or None if they are unknown."""
    try:
        found = [await Topics(api).get_internal_stats(topic)]
    except ServerError:
        try:
            parts = await Topics(api).get_partitioned_internal_stats(topic)
        except ServerError:
            return None
        found = list((parts or {}).get("partitions", {}).values())
    ledgers: Entries = {}
    for stats in found:
        if stats:
            ledgers.update(_entries(stats))
    return ledgers or None


def _entries(stats: TopicInternalStats) -> Entries:
    ledgers = {ledger["ledgerId"]: ledger["entries"] for ledger in stats.get("ledgers", ())}
    if ledgers:  # the last ledger is open, and counted apart
        last = max(ledgers)
        ledgers[last] = max(ledgers[last], stats.get("currentLedgerEntries", 0))
    return ledgers


def _note(topic: str, ids: Sequence[PlainId], entries: Entries) -> str:
    """Return a note about the ids that the topic's ledgers contain and those that they do not."""
    missing = [each for each in ids if not 0 <= each.entry_id < entries.get(each.ledger_id, 0)]
    names = ", ".join(f"{each.ledger_id}:{each.entry_id}" for each in missing[:NAMED])
    if len(missing) > NAMED:
        names += f" and {len(missing) - NAMED} more"
    told = f"In the topic's ledgers: {len(ids) - len(missing)} of {len(ids)} message ids"
    if missing:
        told += f"; not there: {names}"
    if len(missing) < len(ids):
        return told
    return f"Warning: nothing is skipped. {told}; see pulsarium admin topics stats-internal {topic}"


async def _skip(api: Api, values: Values) -> None:
    ids = _skipped(values)
    entries = await _entries_of(api, values.topic)  # before the skip, which may delete ledgers
    await Topics(api).skip_by_message_ids(values.topic, values.subscription, ids)
    if entries is not None:
        click.echo(_note(values.topic, ids, entries), err=True)


SKIP_BY_ID = AdminCommand(
    "skip-messages",
    "Skip some messages for a subscription by their message IDs.",
    _skip,
    (
        TOPIC_ARGUMENT,
        SUBSCRIPTION,
        option(
            "--messageId-triplet",
            type=Parsed("L:E[:B]", _triplet),
            many=True,
            help="The message id as ledgerId:entryId, or ledgerId:entryId:batchIndex in a batch. May be repeated.",
        ),
        option(
            "--messageId-base64",
            type=Parsed("ID", _serialized),
            many=True,
            help="A serialized MessageId in base64; may be repeated.",
        ),
    ),
    example="orders -s billing --messageId-triplet 12345:100 --messageId-triplet 12345:101:3",
)


BY_INDEX = of_topic.shows(
    "get-message-id-by-index",
    Topics.get_message_id_by_index,
    "Show the id of the entry with this message index. The broker must have AppendIndexMetadataInterceptor.",
    option("--index", "-i", type=LONG, required=True, help="The index, from 0."),
    show=message_id,
    example="--index 12345 persistent://public/default/orders",
)

COMMANDS = (
    peek_command(
        option("--show-server-marker", "-ssm", flag=True, help="Show the broker's markers too."),
        option(
            "--transaction-isolation-level",
            "-til",
            type=click.Choice(["READ_COMMITTED", "READ_UNCOMMITTED"]),
            default="READ_COMMITTED",
            help="Show messages of open and aborted transactions too (READ_UNCOMMITTED).",
        ),
    ),
    AdminCommand(
        "examine-messages",
        "Show the message at a position, counted from the first or the last.",
        _examine,
        (
            TOPIC_ARGUMENT,
            option("--initialPosition", "-i", default="latest", help="Count from `earliest` or from `latest`."),
            option("--messagePosition", "-m", type=LONG, default=1, help="The position, from 1."),
        ),
        show,
        example="orders --initialPosition earliest --messagePosition 1",
    ),
    BY_ID,
    of_topic.shows(
        "get-message-id",
        Topics.get_message_id_by_timestamp,
        "Show the id of the first message published at or after a time.",
        option(
            "--datetime",
            "-d",
            dest="timestamp",
            type=TIMESTAMP,
            required=True,
            help="The time, like 2021-06-28T16:53:08Z.",
        ),
        show=message_id,
        example="orders --datetime 2021-06-28T16:53:08Z",
    ),
    LAST,
    SKIP_BY_ID,
    BY_INDEX,
)
