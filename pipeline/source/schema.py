"""The columns of what is read."""

from __future__ import annotations

from collections.abc import Sequence

from pulsarium.client import Client, SchemaInfo
from pulsarium.client.errors import TopicNotFound
from pulsarium.client.topics import parse
from pulsarium.pipeline.columns import Columns
from pulsarium.pipeline.options import BadOption
from pulsarium.pipeline.pulsar import Pulsar
from pulsarium.pipeline.source.many import each
from pulsarium.pipeline.source.options import SourceOptions


def columns_of(options: SourceOptions) -> Columns:
    """By the schema that all topics have. NoSuchTopic; BadOption if they have different ones."""
    with Pulsar(options.connection) as pulsar:
        return Columns.of(pulsar.call(_common, pulsar.client, options))


async def _common(client: Client, options: SourceOptions) -> SchemaInfo | None:
    topics = await options.topics.find(client)
    if options.bytes_only:
        return None
    names: Sequence[str] = sorted({str(parse(topic).partitioned_name) for topic in topics})
    found = await each(names, lambda name: _schema(client, name))
    kinds: dict[tuple[int, bytes] | None, str] = {}
    for name, info in found.items():
        kinds.setdefault(None if info is None else (int(info.type), info.data), name)
    if len(kinds) > 1:
        one, other, *_ = kinds.values()
        raise BadOption(
            f"{one} and {other} have different schemas: read them apart, or as bytes with "
            '.option("allowDifferentTopicSchemas", "true")'
        )
    return next(iter(found.values()), None)


async def _schema(client: Client, topic: str) -> SchemaInfo | None:
    """None: bytes."""
    try:
        return await client.get_schema(topic)
    except TopicNotFound:  # there is none
        return None
