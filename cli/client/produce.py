"""`pulsarium client produce`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pulsarium.cli.client.session import ClientFailure, ClientRun, Keys, only_bytes, pace, refuse

if TYPE_CHECKING:
    from pulsarium.client import Client

MOST = 1000


@click.command(context_settings={"show_default": True})
@click.argument("topic")
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
@click.option("-vs", "--value-schema", default="bytes", help="Encode with this schema: only bytes.")
@click.option("-ks", "--key-schema", default="string", help="The schema of keys in a key-value encoding.")
@click.option("-kvet", "--key-value-encoding-type", help="separated or inline. Not supported yet.")
@click.option("-kvk", "--key-value-key", help="A key with a schema. Not supported yet.")
@click.option("-kvkf", "--key-value-key-file", help="Key of KeyValue messages, from a file. Not supported yet.")
@click.pass_obj
def produce(session: ClientRun, /, topic: str, **asked: Any) -> None:
    """Publish messages.

    \b
    Send two messages with a key, then a file:
      pulsarium client produce orders --messages first,second --key alice
      pulsarium client produce orders --files order.json --properties source=shop
    """
    refuse("--key-value-encoding-type", asked["key_value_encoding_type"], "key-value schemas are not supported yet")
    refuse("--key-value-key", asked["key_value_key"], "key-value schemas are not supported yet")
    refuse("--key-value-key-file", asked["key_value_key_file"], "key-value schemas are not supported yet")
    only_bytes("--value-schema", asked["value_schema"])
    contents = _contents(asked["messages"], asked["files"], asked["separator"])
    total = len(contents) * asked["num_produce"]
    if total > MOST:
        raise ClientFailure(f"Attempting to send {total} messages. Please do not send more than {MOST} messages")
    key_name, key_value = asked["encryption_key_name"], asked["encryption_key_value"]
    if bool(key_name) != bool(key_value):
        raise click.UsageError("--encryption-key-name and --encryption-key-value need each other; pass both")
    chunking = asked["chunking"]
    options: dict[str, Any] = {
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


def _contents(messages: tuple[str, ...], files: tuple[str, ...], separator: str) -> list[bytes]:
    texts = [part for text in messages for part in (text.split(separator) if separator else [text])]
    contents = [text.encode() for text in texts]
    for name in (name for names in files for name in names.split(",")):
        try:
            contents.append(Path(name).read_bytes())
        except OSError as error:
            raise ClientFailure(f"{name}: {error.strerror}") from None
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
