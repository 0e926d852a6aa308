"""`pulsarium client consume` and `pulsarium client read`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from pulsarium.cli.admin.values import CURSOR_POSITION, pattern
from pulsarium.cli.client.session import Keys, Session, only_bytes, pace, refuse

if TYPE_CHECKING:
    from pulsarium.client import Client, Message, MessageId
    from pulsarium.rest.message_ids import Place

_FOREVER = 2**63 - 1


def _receiving(command: Callable[..., None]) -> Callable[..., None]:
    """The options that both commands have."""
    for option in reversed(
        (
            click.option("-n", "--num-messages", type=click.IntRange(min=0), default=1, help="How many; 0: for ever."),
            click.option("--hex", "hexadecimal", is_flag=True, help="Contents in hexadecimal."),
            click.option("--hide-content", is_flag=True, help="Count them, and show nothing."),
            click.option("-mp", "--print-metadata", is_flag=True, help="Show ids, producer and more."),
            click.option("-r", "--rate", type=click.FloatRange(min=0), default=0.0, help="Messages a second; 0: all."),
            click.option("-q", "--queue-size", type=click.IntRange(min=0), default=0, help="How many may wait here."),
            click.option("-st", "--schema-type", default="bytes", help="The schema: bytes."),
            click.option(
                "-ekv", "--encryption-key-value", metavar="URI", help="The private key: file:///... or data:..."
            ),
            click.option(
                *("-ca", "--crypto-failure-action"),
                type=click.Choice(["FAIL", "DISCARD", "CONSUME"]),
                default="FAIL",
                help="What becomes of a message that it does not open.",
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
                help="Acknowledge the oldest incomplete one beyond that.",
            ),
            click.option("-pm", "--pool-messages", type=bool, default=True, help="Of Java's memory; no effect."),
        )
    ):
        command = option(command)
    return command


@click.command(context_settings={"show_default": True})
@click.argument("topic")
@click.option("-s", "--subscription-name", required=True, help="The subscription.")
@click.option(
    *("-t", "--subscription-type"),
    type=click.Choice(["Exclusive", "Shared", "Failover", "Key_Shared"]),
    default="Exclusive",
    help="Who else may consume from it.",
)
@click.option(
    *("-m", "--subscription-mode"),
    type=click.Choice(["Durable", "NonDurable"]),
    default="Durable",
    help="Whether it is kept afterwards.",
)
@click.option(
    *("-p", "--subscription-position"),
    type=click.Choice(["Latest", "Earliest"]),
    default="Latest",
    help="Where it begins if it is new.",
)
@click.option("--regex", is_flag=True, help="TOPIC is a regular expression.")
@click.option("-rs", "--replicated", is_flag=True, help="Replicate its state to other clusters.")
@click.option("-stp", "--start-timestamp", type=int, default=0, help="Begin here, in ms since the epoch.")
@click.option("-etp", "--end-timestamp", type=int, default=_FOREVER, show_default=False, help="End there.")
@_receiving
@click.pass_obj
def consume(session: Session, /, topic: str, **asked: Any) -> None:
    """Receive messages of a subscription and acknowledge them.

    \b
    The next three, from the first message on if the subscription is new:
      pulsarium client consume orders -s billing -p Earliest -n 3
    All that come, until Ctrl-C:
      pulsarium client consume orders -s billing -n 0
    """
    if not asked["subscription_name"]:
        raise click.UsageError("Subscription name is not provided.")
    refuse("--subscription-mode", asked["subscription_mode"] != "Durable", "NonDurable is not there yet; `read` is one")
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
            await _show(consumer.receive, asked, consumer.acknowledge)

    session.run(job)


@click.command(context_settings={"show_default": True})
@click.argument("topic")
@click.option(
    *("-m", "--start-message-id"),
    type=CURSOR_POSITION,
    default="latest",
    help="Begin behind this: latest, earliest or ledgerId:entryId.",
)
@click.option("-i", "--start-message-id-inclusive", is_flag=True, help="Begin with it.")
@_receiving
@click.pass_obj
def read(session: Session, /, topic: str, **asked: Any) -> None:
    """Show messages, without a subscription.

    \b
    The first ten:
      pulsarium client read orders -m earliest -n 10
    """
    options = _options(asked)

    async def job(client: Client) -> None:
        inclusive = asked["start_message_id_inclusive"]
        start = _message_id(asked["start_message_id"])
        async with client.create_reader(topic, start, start_message_id_inclusive=inclusive, **options) as reader:
            await _show(reader.read_next, {**asked, "end_timestamp": _FOREVER})

    session.run(job)


def _message_id(position: Place) -> MessageId:
    from pulsarium.client import MessageId

    return MessageId(position.ledger_id, position.entry_id)


def _options(asked: dict[str, Any]) -> dict[str, Any]:
    from pulsarium.client import ConsumerCryptoFailureAction

    only_bytes("--schema-type", asked["schema_type"])
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
    receive: Callable[[], Awaitable[Message]],
    asked: dict[str, Any],
    acknowledge: Callable[[Message], Awaitable[None]] | None = None,
) -> None:
    wait = pace(asked["rate"])
    left = asked["num_messages"] or _FOREVER
    received = 0
    while received < left:
        await wait()
        message = await receive()
        if message.publish_timestamp() > asked["end_timestamp"]:
            break
        received += 1
        if not asked["hide_content"]:
            click.echo(shown(message, hexadecimal=asked["hexadecimal"], metadata=asked["print_metadata"]))
        if acknowledge is not None:
            await acknowledge(message)
    click.echo(f"{received} messages received", err=True)


# ---- a received message, as pulsar-client prints it

HEADING = "----- got message -----"


def shown(message: Message, *, hexadecimal: bool, metadata: bool) -> str:
    """The heading, and one line of what it holds."""
    properties = ", ".join(f"{key}={value}" for key, value in message.properties().items())
    key = message.partition_key() if message.has_partition_key() else "null"
    parts = [
        f"publishTime:[{message.publish_timestamp()}]",
        f"eventTime:[{message.event_timestamp()}]",
        f"key:[{key}]",
        f"properties:[{properties}]",
        f"content:{_content(message, hexadecimal)}",
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
    """`ledger:entry:partition`, and the index of one in a batch."""
    found = message.message_id()
    batch = "" if found.batch_index == -1 else f":{found.batch_index}"
    return f"{found.ledger_id}:{found.entry_id}:{found.partition}{batch}"


def _date(milliseconds: int) -> str:
    """As Java writes an Instant: no fraction where there is none."""
    moment = datetime.fromtimestamp(milliseconds // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    fraction = milliseconds % 1000
    return f"{moment}.{fraction:03}Z" if fraction else f"{moment}Z"
