"""`pulsarium admin scalable-topics`."""

from __future__ import annotations

from typing import Any

import click

from pulsarium.cli.admin.api import Api
from pulsarium.cli.admin.command import AdminCommand, CommandGroup, CommandsOf, Values, argument, option
from pulsarium.cli.admin.output import json_value, lines, value
from pulsarium.cli.admin.values import INT, LONG, NAMESPACE, TOPIC, key_values
from pulsarium.rest.scalable_topics import ScalableTopics

of_topic = CommandsOf(ScalableTopics, argument("topic", TOPIC))


async def _list(api: Api, values: Values) -> list[str]:
    if bool(values.property_key) != (values.property_value is not None):
        raise click.UsageError("--property-key and --property-value must be specified together")
    wanted = {values.property_key: values.property_value} if values.property_key else {}
    return await ScalableTopics(api).list_scalable_topics(values.namespace, wanted)


async def _create(api: Api, values: Values) -> str:
    await ScalableTopics(api).create_scalable_topic(values.topic, values.segments, key_values(values.property))
    return f"Created scalable topic {values.topic} with {values.segments} segment(s)"


async def _delete(api: Api, values: Values) -> str:
    await ScalableTopics(api).delete_scalable_topic(values.topic, force=values.force)
    return f"Deleted scalable topic {values.topic}"


async def _split(api: Api, values: Values) -> str:
    await ScalableTopics(api).split_segment(values.topic, values.segment_id)
    return f"Split segment {values.segment_id} of topic {values.topic}"


async def _merge(api: Api, values: Values) -> str:
    first, second = values.segment_id_1, values.segment_id_2
    await ScalableTopics(api).merge_segments(values.topic, first, second)
    return f"Merged segments {first} and {second} of topic {values.topic}"


def _segment(*names: str, help: str) -> click.Option:
    return option(*names, type=LONG, required=True, help=help)


_TOPIC: tuple[Any, ...] = (argument("topic"),)
_ROWS = (
    AdminCommand(
        "list",
        "List the scalable topics of a namespace.",
        _list,
        (
            argument("namespace", NAMESPACE),
            option("--property-key", "-pk", help="List only topics with this property; needs --property-value."),
            option("--property-value", "-pv", help="The value of the property."),
        ),
        lines,
    ),
    AdminCommand(
        "create",
        "Create a scalable topic.",
        _create,
        (
            *_TOPIC,
            option("--segments", "-s", type=INT, default=1, help="Number of segments."),
            option("--property", "-p", many=True, metavar="KEY=VALUE", help="Set a property. May be repeated."),
        ),
        value,
        example="topic://public/default/orders --segments 4",
    ),
    of_topic.shows("get-metadata", ScalableTopics.get_metadata, "Show the layout of a topic.", show=json_value),
    of_topic.shows("stats", ScalableTopics.get_stats, "Show stats of a scalable topic.", show=json_value),
    AdminCommand(
        "delete",
        "Delete a scalable topic with its segments.",
        _delete,
        (*_TOPIC, option("--force", "-f", flag=True, help="Delete also while clients are connected.")),
        value,
    ),
    AdminCommand(
        "split-segment",
        "Split a segment into its two halves.",
        _split,
        (*_TOPIC, _segment("--segment-id", "-s", help="The segment.")),
        value,
        example="topic://public/default/orders --segment-id 0",
    ),
    AdminCommand(
        "merge-segments",
        "Merge two adjacent segments into one.",
        _merge,
        (
            *_TOPIC,
            _segment("--segment-id-1", help="The first segment."),
            _segment("--segment-id-2", help="The second segment."),
        ),
        value,
    ),
)

GROUPS = {"scalable-topics": CommandGroup(_ROWS)}
