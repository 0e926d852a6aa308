"""`pulsarium client produce`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pulsarium.cli.client.session import ClientFailure, ClientRun, Keys, pace
from pulsarium.cli.completing import topics

if TYPE_CHECKING:
    from pulsarium.cli.client.encoding import TextSchema
    from pulsarium.client import Client, Schema

MOST = 1000


@click.command(context_settings={"show_default": True})
@click.argument("topic", shell_complete=topics)
@click.option("-m", "--messages", multiple=True, metavar="TEXT,...", help="Send these texts, split at the separator.")
@click.option("-f", "--files", multiple=True, metavar="FILE,...", help="Send these files, each as one message.")
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
    """
    from pulsarium.cli.client.encoding import TextSchema

    value = TextSchema("--value-schema", asked["value_schema"])
    contents = _contents(asked["messages"], asked["files"], asked["separator"], value)
    schema, contents = _pairs(asked, value, contents) if _sends_pairs(asked) else (value.schema, contents)
    total = len(contents) * asked["num_produce"]
    if total > MOST:
        raise ClientFailure(f"Attempting to send {total} messages. Please do not send more than {MOST} messages")
    key_name, key_value = asked["encryption_key_name"], asked["encryption_key_value"]
    if bool(key_name) != bool(key_value):
        raise click.UsageError("--encryption-key-name and --encryption-key-value need each other; pass both")
    chunking = asked["chunking"]
    options: dict[str, Any] = {
        "schema": schema,
        "batching_enabled": not (asked["disable_batching"] or chunking),
        "chunking_enabled": chunking,
    }
    if key_name:
        options |= {"encryption_keys": (key_name,), "crypto_key_reader": Keys(key_value)}
    properties = _properties(asked["properties"])

    async def job(client: Client) -> None:
        async with client.create_producer(topic, **options) as producer:
            wait = pace(asked["rate"])
            for _ in range(asked["num_produce"]):
                for content in contents:
                    await wait()
                    await producer.send(content, partition_key=asked["key"], properties=properties)
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


def _pairs(asked: dict[str, Any], value: TextSchema, contents: list[bytes]) -> tuple[Schema[Any], list[Any]]:
    """Return the schema of pairs, and a pair for each content."""
    from pulsarium.cli.client.encoding import TextSchema, pair_schema
    from pulsarium.client import KeyValue

    of_key, text, name = (
        TextSchema("--key-schema", asked["key_schema"]),
        asked["key_value_key"],
        asked["key_value_key_file"],
    )
    key = _read(name) if name is not None else None if text is None else _encoded(of_key, "--key-value-key", text)
    return pair_schema(of_key, value, asked["key_value_encoding_type"]), [KeyValue(key, each) for each in contents]


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


def _contents(messages: tuple[str, ...], files: tuple[str, ...], separator: str, schema: TextSchema) -> list[Any]:
    """Return the texts, encoded by the schema, and the files as they are."""
    texts = [part for text in messages for part in (text.split(separator) if separator else [text])]
    contents = [_encoded(schema, "--messages", text) for text in texts]
    contents += [_read(name) for names in files for name in names.split(",")]
    if not contents:
        raise click.UsageError("Please supply message content with either --messages or --files")
    return contents


def _properties(texts: tuple[str, ...]) -> dict[str, str]:
    """Return the properties of all texts. As in pulsar-client, `-p a=b,c` is one property with the value `b,c`."""
    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise click.UsageError(f"--properties: '{text}': write KEY=VALUE")
        found[name] = value
    return found
