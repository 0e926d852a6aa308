"""`pulsarium client consume` and `pulsarium client read`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from pulsarium.cli.admin.values import CURSOR_POSITION, pattern
from pulsarium.cli.client.session import ClientRun, Keys, pace, refuse
from pulsarium.cli.completing import subscriptions, topics
from pulsarium.cli.grouped import together
from pulsarium.proto.numbers import LONG_MAX

if TYPE_CHECKING:
    from pulsarium.client import Client, Message, MessageId
    from pulsarium.rest.message_ids import PlainId


_receiving = together(
    click.option(
        "-n", "--num-messages", type=click.IntRange(min=0), default=1, help="Stop after N messages; 0: never."
    ),
    click.option("--hex", "hexadecimal", is_flag=True, help="Show contents in hexadecimal."),
    click.option("--hide-content", is_flag=True, help="Count the messages without showing them."),
    click.option("-mp", "--print-metadata", is_flag=True, help="Show message id, producer and more."),
    click.option(
        "-r", "--rate", type=click.FloatRange(min=0), default=0.0, help="Limit messages a second; 0: no limit."
    ),
    click.option(
        "-q",
        "--queue-size",
        type=click.IntRange(min=0),
        default=0,
        help="Buffer this many messages; 0: the client's default.",
    ),
    click.option(
        "-st",
        "--schema-type",
        type=click.Choice(["bytes", "auto_consume"]),
        default="bytes",
        help="Show the bytes, or decode them with the topic's schema.",
    ),
    click.option(
        "-ekv",
        "--encryption-key-value",
        metavar="URI",
        help="Decrypt with this private key: file:///... or data:...",
    ),
    click.option(
        *("-ca", "--crypto-failure-action"),
        type=click.Choice(["FAIL", "DISCARD", "CONSUME"]),
        default="FAIL",
        help="Choose what happens to a message that cannot be decrypted.",
    ),
    click.option(
        "-mc",
        "--max_chunked_msg",
        type=int,
        default=0,
        help="Join at most this many chunked messages at a time.",
    ),
    click.option(
        "-ac",
        "--auto_ack_chunk_q_full",
        is_flag=True,
        help="Acknowledge the oldest incomplete message beyond that limit.",
    ),
    click.option("-pm", "--pool-messages", type=bool, default=True, help="Ignored: pooling is for Java's memory."),
)


@click.command(context_settings={"show_default": True})
@click.argument("topic", shell_complete=topics)
@click.option("-s", "--subscription-name", required=True, shell_complete=subscriptions, help="The subscription.")
@click.option(
    *("-t", "--subscription-type"),
    type=click.Choice(["Exclusive", "Shared", "Failover", "Key_Shared"]),
    default="Exclusive",
    help="Share the subscription in this way.",
)
@click.option(
    *("-m", "--subscription-mode"),
    type=click.Choice(["Durable", "NonDurable"]),
    default="Durable",
    help="Keep the subscription afterwards (Durable), or not.",
)
@click.option(
    *("-p", "--subscription-position"),
    type=click.Choice(["Latest", "Earliest"]),
    default="Latest",
    help="Start a new subscription here.",
)
@click.option("--regex", is_flag=True, help="Take TOPIC as a regular expression.")
@click.option("-rs", "--replicated", is_flag=True, help="Replicate the subscription's state to other clusters.")
@click.option(
    "-stp", "--start-timestamp", type=int, default=0, help="Seek to this publish time, in ms since the epoch."
)
@click.option(
    "-etp",
    "--end-timestamp",
    type=int,
    default=LONG_MAX,
    show_default=False,
    help="Stop behind this publish time, in ms since the epoch.",
)
@_receiving
@click.pass_obj
def consume(session: ClientRun, /, topic: str, **asked: Any) -> None:
    """Receive messages of a subscription and acknowledge them.

    \b
    Receive the next three messages, from the first one on if the subscription is new:
      pulsarium client consume orders -s billing -p Earliest -n 3
    Receive all messages until Ctrl-C:
      pulsarium client consume orders -s billing -n 0
    """
    if not asked["subscription_name"]:
        raise click.UsageError("Subscription name is not provided.")
    refuse(
        "--subscription-mode",
        asked["subscription_mode"] != "Durable",
        "NonDurable is not supported yet; use `pulsarium client read`",
    )
    options = _options(asked)
    topics = pattern("TOPIC", topic) if asked["regex"] else topic

    async def job(client: Client) -> None:
        from pulsarium.client import ConsumerType, InitialPosition

        async with client.subscribe(
            topics,
            asked["subscription_name"],
            consumer_type=ConsumerType[asked["subscription_type"].replace("_", "")],
            initial_position=InitialPosition[asked["subscription_position"]],
            replicate_subscription_state_enabled=asked["replicated"],
            ack_receipt_enabled=True,
            **options,
        ) as consumer:
            if asked["start_timestamp"] > 0:
                await consumer.seek(asked["start_timestamp"])
            await _show(client, consumer.receive, asked, consumer.acknowledge)

    session.run(job)


@click.command(context_settings={"show_default": True})
@click.argument("topic", shell_complete=topics)
@click.option(
    *("-m", "--start-message-id"),
    type=CURSOR_POSITION,
    default="latest",
    help="Start behind this message: latest, earliest or ledgerId:entryId.",
)
@click.option("-i", "--start-message-id-inclusive", is_flag=True, help="Include the message of --start-message-id.")
@_receiving
@click.pass_obj
def read(session: ClientRun, /, topic: str, **asked: Any) -> None:
    """Show messages without a subscription.

    \b
    Show the first ten messages:
      pulsarium client read orders -m earliest -n 10
    """
    options = _options(asked)

    async def job(client: Client) -> None:
        inclusive = asked["start_message_id_inclusive"]
        start = _message_id(asked["start_message_id"])
        async with client.create_reader(topic, start, start_message_id_inclusive=inclusive, **options) as reader:
            await _show(client, reader.read_next, {**asked, "end_timestamp": LONG_MAX})

    session.run(job)


def _message_id(position: PlainId) -> MessageId:
    from pulsarium.client import MessageId

    return MessageId(position.ledger_id, position.entry_id)


def _options(asked: dict[str, Any]) -> dict[str, Any]:
    from pulsarium.client import ConsumerCryptoFailureAction

    options: dict[str, Any] = {"crypto_failure_action": ConsumerCryptoFailureAction[asked["crypto_failure_action"]]}
    if asked["encryption_key_value"]:
        options["crypto_key_reader"] = Keys(asked["encryption_key_value"])
    if asked["max_chunked_msg"]:
        options["max_pending_chunked_message"] = asked["max_chunked_msg"]
    if asked["auto_ack_chunk_q_full"]:
        options["auto_ack_oldest_chunked_message_on_queue_full"] = True
    if asked["queue_size"]:
        options["receiver_queue_size"] = asked["queue_size"]
    return options


async def _show(
    client: Client,
    receive: Callable[[], Awaitable[Message]],
    asked: dict[str, Any],
    acknowledge: Callable[[Message], Awaitable[None]] | None = None,
) -> None:
    from pulsarium.cli.client.decoding import SchemaDecoder

    decoder = SchemaDecoder(client) if asked["schema_type"] == "auto_consume" else None
    wait = pace(asked["rate"])
    left = asked["num_messages"] or LONG_MAX
    received = 0
    while received < left:
        await wait()
        message = await receive()
        if message.publish_timestamp() > asked["end_timestamp"]:
            break
        received += 1
        if not asked["hide_content"]:
            if decoder is None or message.has_null_value():
                content = _content(message, asked["hexadecimal"])
            else:
                content = await decoder.shown(message)
            click.echo(shown(message, content, metadata=asked["print_metadata"]))
        if acknowledge is not None:
            await acknowledge(message)
    click.echo(f"{received} messages received", err=True)


# ---- a received message, as pulsar-client prints it

HEADING = "----- got message -----"


def shown(message: Message, content: str, *, metadata: bool) -> str:
    """Return the heading, and one line with the message."""
    properties = ", ".join(f"{key}={value}" for key, value in message.properties().items())
    key = message.partition_key() if message.has_partition_key() else "null"
    parts = [
        f"publishTime:[{message.publish_timestamp()}]",
        f"eventTime:[{message.event_timestamp()}]",
        f"key:[{key}]",
        f"properties:[{properties}]",
        f"content:{content}",
    ]
    if metadata:
        parts += _metadata(message)
    return f"{HEADING}\n{', '.join(parts)}"


def _content(message: Message, hexadecimal: bool) -> str:
    if message.has_null_value():
        return "null"
    data = message.data()
    return data.hex(" ") if hexadecimal else data.decode(errors="replace")


def _metadata(message: Message) -> list[str]:
    return [
        f"event-time:{_date(message.event_timestamp())}",
        f"message-id:{_id(message)}",
        f"producer-name:{message.producer_name()}",
        f"sequence-id:{message.sequence_id()}",
        "replicated-from:null",
        f"redelivery-count:{message.redelivery_count()}",
        f"ordering-key:{message.ordering_key()}",
        f"schema-version:{message.schema_version().hex()}",
    ]


def _id(message: Message) -> str:
    """Return `ledger:entry:partition`, with the batch index of a message in a batch."""
    found = message.message_id()
    batch = "" if found.batch_index == -1 else f":{found.batch_index}"
    return f"{found.ledger_id}:{found.entry_id}:{found.partition}{batch}"


def _date(milliseconds: int) -> str:
    """Return the time as Java prints an Instant: without a fraction when it is zero."""
    moment = datetime.fromtimestamp(milliseconds // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    fraction = milliseconds % 1000
    return f"{moment}.{fraction:03}Z" if fraction else f"{moment}Z"
