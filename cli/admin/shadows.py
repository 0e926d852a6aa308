"""The commands of `topics` for shadow topics, which show another topic's messages."""

from pulsarium.rest.policies import SHADOW_TOPICS

from .command import does, option, shows
from .messages import TOPIC_ARGUMENT
from .output import lines
from .values import TOPIC, key_values, split

COMMANDS = (
    shows(
        "get-shadow-topics",
        lambda api, v: api.topic_policies[SHADOW_TOPICS].get(v.topic),
        "List the shadow topics of a topic.",
        TOPIC_ARGUMENT,
        show=lines,
    ),
    does(
        "set-shadow-topics",
        lambda api, v: api.topic_policies[SHADOW_TOPICS].set(v.topic, split(v.topics)),
        "Set the shadow topics of a topic.",
        TOPIC_ARGUMENT,
        option("--topics", "-t", required=True, metavar="TOPIC,...", help="The topics."),
    ),
    does(
        "remove-shadow-topics",
        lambda api, v: api.topic_policies[SHADOW_TOPICS].remove(v.topic),
        "Remove the shadow topics of a topic.",
        TOPIC_ARGUMENT,
    ),
    does(
        "create-shadow-topic",
        lambda api, v: api.topics.create_shadow_topic(v.topic, v.source, key_values(split(v.properties))),
        "Create a topic that shadows another.",
        TOPIC_ARGUMENT,
        option("--source", "-s", type=TOPIC, required=True, help="The other."),
        option("--properties", "-p", many=True, metavar="KEY=VALUE,...", help="Properties of it."),
    ),
    shows(
        "get-shadow-source",
        lambda api, v: api.topics.get_shadow_source(v.topic),
        "Show which topic this one shadows.",
        TOPIC_ARGUMENT,
    ),
)
