"""`pulsarium client produce`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pulsarium.cli.client.session import ClientFailure, ClientRun, Keys, pace
from pulsarium.cli.completing import topics

if TYPE_CHECKING:
    from pulsarium.cli.client.encoding import TextSchema
    from pulsarium.cli.client.lines import Outgoing
    from pulsarium.client import Client

MOST = 1000


@click.command(context_settings={"show_default": True})
@click.argument("topic", shell_complete=topics)
@click.option("-m", "--messages", multiple=True, metavar="TEXT,...", help="Send these texts, split at the separator.")
@click.option("-f", "--files", multiple=True, metavar="FILE,...", help="Send these files, each as one message.")
@click.option(
    "--json-lines",
    is_flag=True,
    help="Send each line of the files as a message: a JSON object of value, key and properties.",
)
@click.option("-n", "--num-produce", type=click.IntRange(min=1), default=1, help="Repeat all messages this many times.")
@click.option("-r", "--rate", type=click.FloatRange(min=0), default=0.0, help="Limit messages a second; 0: no limit.")
@click.option("-s", "--separator", default=",", help="Split messages at this text; empty: do not split.")
@click.option("-k", "--key", help="Set the key of each message.")
@click.option("-p", "--properties", multiple=True, metavar="KEY=VALUE,...", help="Set properties of each message.")
@click.option("-db", "--disable-batching", is_flag=True, help="Send each message in its own entry.")
@click.option("-ekn", "--encryption-key-name", metavar="NAME", help="Encrypt with the key of this name.")
@click.option(
    "-ekv", "--encryption-key-value", metavar="URI", help="The public key in PEM: file:///... or data:...;base64,..."
)
@click.option(
    "-c",
    "--chunking",
    is_flag=True,
    help="Split messages that are larger than the broker accepts, and turn batching off.",
)
@click.option("-dr", "--disable-replication", is_flag=True, help="Keep the messages in this cluster.")
@click.option(
    *("-vs", "--value-schema"),
    default="bytes",
    help="Encode the texts with this schema: bytes, string, avro:DEFINITION or json:DEFINITION. DEFINITION is JSON, or "
    "the name of a file.",
)
@click.option("-ks", "--key-schema", default="string", help="Encode the keys of pairs with this schema.")
@click.option(
    *("-kvet", "--key-value-encoding-type"),
    type=click.Choice(["inline", "separated"]),
    help="Send pairs, whose key is in the payload (inline) or apart.",
)
@click.option("-kvk", "--key-value-key", metavar="TEXT", help="The key of each pair.")
@click.option("-kvkf", "--key-value-key-file", metavar="FILE", help="The key of each pair, encoded in a file.")
@click.pass_obj
def produce(session: ClientRun, /, topic: str, **asked: Any) -> None:
    """Publish messages.

    \b
    Send two messages with a key, then a file:
      pulsarium client produce orders --messages first,second --key alice
      pulsarium client produce orders --files order.json --properties source=shop
    Encode JSON as Avro:
      pulsarium client produce orders --messages '{"id": 7}' --value-schema avro:order.avsc
    Send a message for each line, such as {"value": {"id": 7}, "key": "alice", "properties": {"source": "shop"}}:
      pulsarium client produce orders --files orders.jsonl --json-lines --value-schema avro:order.avsc

    Only the value of a line is required. Without a schema of records, a text is sent as it is, and any other value as
    JSON. null is a message without a value. A line's own key and properties come before --key and --properties. The
    limit of 1000 messages is not for lines.
    """
    from pulsarium.cli.client.encoding import TextSchema, pair_schema

    value, schema = TextSchema("--value-schema", asked["value_schema"]), None
    if _sends_pairs(asked):
        key = TextSchema("--key-schema", asked["key_schema"])
        outgoing = _pairs(asked, key, _messages(asked, value, key))
        schema = pair_schema(key, value, asked["key_value_encoding_type"])
    else:
        outgoing = _messages(asked, value, None)
    total = len(outgoing) * asked["num_produce"]
    if total > MOST and not asked["json_lines"]:
        raise ClientFailure(f"Attempting to send {total} messages. Please do not send more than {MOST} messages")
    key_name, key_value = asked["encryption_key_name"], asked["encryption_key_value"]
    if bool(key_name) != bool(key_value):
        raise click.UsageError("--encryption-key-name and --encryption-key-value need each other; pass both")
    chunking = asked["chunking"]
    options: dict[str, Any] = {
        "schema": schema or value.schema,
        "batching_enabled": not (asked["disable_batching"] or chunking),
        "chunking_enabled": chunking,
    }
    if key_name:
        options |= {"encryption_keys": (key_name,), "crypto_key_reader": Keys(key_value)}

    async def job(client: Client) -> None:
        async with client.create_producer(topic, **options) as producer:
            wait = pace(asked["rate"])
            for _ in range(asked["num_produce"]):
                for message in outgoing:
                    await wait()
                    await producer.send(message.content, partition_key=message.key, properties=message.properties)
        click.echo(f"{total} messages successfully produced", err=True)

    session.run(job)


def _sends_pairs(asked: dict[str, Any]) -> bool:
    """Return whether the messages are pairs. Raise click.UsageError for options that do not fit together."""
    keys = [name for name in ("key_value_key", "key_value_key_file") if asked[name] is not None]
    pairs = asked["key_value_encoding_type"] is not None
    if keys and not pairs:
        raise click.UsageError("--key-value-key and --key-value-key-file need --key-value-encoding-type")
    if len(keys) > 1 or (pairs and asked["key"] is not None):
        raise click.UsageError("pass only one of --key, --key-value-key and --key-value-key-file")
    return pairs


def _pairs(asked: dict[str, Any], schema: TextSchema, messages: list[Outgoing]) -> list[Outgoing]:
    """Return a pair for each message, whose key is its own or that of the options."""
    from pulsarium.cli.client.lines import Outgoing
    from pulsarium.client import KeyValue

    text, name = asked["key_value_key"], asked["key_value_key_file"]
    key = _read(name) if name is not None else None if text is None else _encoded(schema, "--key-value-key", text)
    return [
        Outgoing(KeyValue(key if each.key is None else each.key, each.content), None, each.properties)
        for each in messages
    ]


def _encoded(schema: TextSchema, option: str, text: str) -> bytes:
    try:
        return schema.encode(text)
    except ValueError as error:
        raise ClientFailure(f"{option}: {error}") from None


def _read(name: str) -> bytes:
    try:
        return Path(name).read_bytes()
    except OSError as error:
        raise ClientFailure(f"{name}: {error.strerror}") from None


def _messages(asked: dict[str, Any], value: TextSchema, key: TextSchema | None) -> list[Outgoing]:
    """Return the texts, encoded by the schema, and the files as they are or line by line."""
    from pulsarium.cli.client.lines import Outgoing

    separator, common, properties = asked["separator"], asked["key"], _properties(asked["properties"])
    texts = [part for text in asked["messages"] for part in (text.split(separator) if separator else [text])]
    files = [name for names in asked["files"] for name in names.split(",")]
    if asked["json_lines"] and not files:
        raise click.UsageError("--json-lines is about the files: pass --files, too")
    contents = [_encoded(value, "--messages", text) for text in texts]
    if asked["json_lines"]:
        lines = [line for name in files for line in _lines(name, value, key)]
    else:
        contents += [_read(name) for name in files]
        lines = []
    found = [Outgoing(content, common, properties) for content in contents]
    found += [
        Outgoing(line.content, common if line.key is None else line.key, properties | line.properties) for line in lines
    ]
    if not found:
        raise click.UsageError("Please supply message content with either --messages or --files")
    return found


def _lines(name: str, value: TextSchema, key: TextSchema | None) -> list[Outgoing]:
    from pulsarium.cli.client.lines import read_lines

    try:
        return list(read_lines(name, _read(name), value, key))
    except ValueError as error:
        raise ClientFailure(str(error)) from None


def _properties(texts: tuple[str, ...]) -> dict[str, str]:
    """Return the properties of all texts. As in pulsar-client, `-p a=b,c` is one property with the value `b,c`."""
    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise click.UsageError(f"--properties: '{text}': write KEY=VALUE")
        found[name] = value
    return found
