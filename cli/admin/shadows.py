"""The commands of `topics` for shadow topics, which show another topic's messages."""

from __future__ import annotations

from pulsarium.cli.admin.command import option
from pulsarium.cli.admin.messages import of_topic
from pulsarium.cli.admin.output import lines
from pulsarium.cli.admin.policies import TOPIC_POLICIES
from pulsarium.cli.admin.values import TOPIC, key_values, split
from pulsarium.rest.policies import SHADOW_TOPICS
from pulsarium.rest.topics import Topics

COMMANDS = (
    TOPIC_POLICIES.gets(SHADOW_TOPICS, "get-shadow-topics", "List the shadow topics of a topic.", show=lines),
    TOPIC_POLICIES.sets(
        SHADOW_TOPICS,
        "set-shadow-topics",
        "Set the shadow topics of a topic.",
        option("--topics", "-t", required=True, metavar="TOPIC,...", help="The topics."),
        body=lambda v: split(v.topics),
    ),
    TOPIC_POLICIES.removes(SHADOW_TOPICS, "remove-shadow-topics", "Remove the shadow topics of a topic."),
    of_topic.does(
        "create-shadow-topic",
        Topics.create_shadow_topic,
        "Create a topic that shadows another.",
        option("--source", "-s", type=TOPIC, required=True, help="The other."),
        option("--properties", "-p", many=True, metavar="KEY=VALUE,...", help="Properties of it."),
        properties=lambda v: key_values(split(v.properties)),
    ),
    of_topic.shows("get-shadow-source", Topics.get_shadow_source, "Show which topic this one shadows."),
)
