"""Find the subscriptions of a query in its checkpoint, and delete them when the query is given up."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from pyarrow import fs

from pulsarium.client import Client, InitialPosition
from pulsarium.client.errors import TopicNotFound
from pulsarium.pipeline.source.offsets import SUBSCRIPTION, decode, subscription_of
from pulsarium.pipeline.source.subscription import SourceSubscription


class NoSubscriptions(LookupError):
    """A folder that is no checkpoint of a query on this source."""


def subscriptions(checkpoint: str) -> dict[str, list[str]]:
    """Return the topics of each subscription that the newest offsets of a checkpoint name.

    The checkpoint is a folder, or a URI such as s3://bucket/folder. Raise `NoSubscriptions`, and `OSError`.
    """
    offsets = _newest(checkpoint)
    found: dict[str, list[str]] = {}
    for kept in _sources(offsets.splitlines()):
        found.setdefault(subscription_of(kept), []).extend(decode(kept))
    if not found:
        raise NoSubscriptions(
            f"{checkpoint}: the checkpoint names no subscription, because its query does not read Pulsar: name the "
            "checkpointLocation of the query whose subscription is to be deleted"
        )
    return found


async def abandon(client: Client, found: Mapping[str, list[str]]) -> list[str]:
    """Delete subscriptions, and return the topics that had one.

    Raise `SubscriptionInUse` when the query still runs.
    """
    deleted: list[str] = []
    for name, topics in found.items():
        subscription = SourceSubscription(client, name)
        for topic in topics:
            with suppress(TopicNotFound):
                await subscription.join(topic, InitialPosition.Latest)
                deleted.append(topic)
        await subscription.delete()
    return deleted


def _newest(checkpoint: str) -> str:
    """Return the text of the newest offsets."""
    if "://" in checkpoint:
        system, folder = fs.FileSystem.from_uri(checkpoint)
    else:
        system, folder = fs.LocalFileSystem(), str(Path(checkpoint).absolute())
    listed = system.get_file_info(fs.FileSelector(f"{folder}/offsets", allow_not_found=True))
    batches = {int(one.base_name): one.path for one in listed if one.base_name.isdecimal()}
    if not batches:
        raise NoSubscriptions(f"{checkpoint}: the folder is no checkpoint of a query that has run")
    with system.open_input_stream(batches[max(batches)]) as stream:
        return bytes(stream.read()).decode()


def _sources(lines: list[str]) -> Iterator[Mapping[str, Mapping[str, str]]]:
    """Yield the offsets of this source. A line has the offsets of one source, or those of all by name."""
    for line in lines:
        with suppress(json.JSONDecodeError):
            yield from _within(json.loads(line))


def _within(value: Any) -> Iterator[Mapping[str, Mapping[str, str]]]:
    if isinstance(value, str) and value.startswith("{"):
        with suppress(json.JSONDecodeError):
            value = json.loads(value)
    if isinstance(value, dict):
        if isinstance(value.get(SUBSCRIPTION), dict):
            yield value
        else:
            for each in value.values():
                yield from _within(each)
