"""The commands of `topics` that concern subscriptions and their cursors."""

import time
from typing import Any

import click

from .api import Api
from .command import Command, Values, delete, either, get, option, path_of, post, put
from .messages import SUBSCRIPTION, TOPIC_ARGUMENT
from .output import compact, lines, pairs, value
from .values import CURSOR_POSITION, LONG, POSITION, SECONDS, key_values

FORCE = option("--force", "-f", flag=True, help="Also while consumers are connected.")
AT = option(
    "--messageId", "-m", type=CURSOR_POSITION, default="latest", help="Where: latest, earliest or ledgerId:entryId."
)
PROPERTY = option("--property", "-p", many=True, metavar="KEY=VALUE", help="A property; may be repeated.")
EXPIRE_TIME = option("--expireTime", "-t", type=SECONDS, required=True, help="Older than this, like 10s, 3h or 2d.")
EXCLUDE = option("--exclude-reset-position", "-e", flag=True, help="Begin after the message, not with it.")

_SUBSCRIPTION_PATH = "{topic}/subscription/{subscription:twice}"


def message_id_json(position: tuple[int, int], **more: object) -> dict[str, object]:
    """A MessageId in a body."""
    ledger_id, entry_id = position
    return {"ledgerId": ledger_id, "entryId": entry_id, "partitionIndex": -1, "batchIndex": -1, **more}


def _create(values: Values) -> dict[str, object]:
    properties = key_values(values.property)
    if properties:
        return message_id_json(values.message_id, properties=properties, excluded=False)
    return message_id_json(values.message_id, batchSize=0)


def _update_properties(api: Api, values: Values) -> None:
    properties = key_values(values.property)
    if not properties and not values.clear:
        raise click.UsageError("If you want to clear the properties you have to use --clear")
    if properties and values.clear:
        raise click.UsageError("If you set --clear then you should not pass any properties")
    api.call("PUT", path_of(f"{_SUBSCRIPTION_PATH}/properties", values), body=properties)


def _expire(api: Api, values: Values) -> None:
    position = getattr(values, "position", None)
    if hasattr(values, "position") and values.expire_time < 0 and position is None:
        raise click.UsageError("Either --expireTime or --position has to be provided to expire messages")
    path = path_of(f"{_SUBSCRIPTION_PATH}/expireMessages", values)
    if position is None:
        api.call("POST", f"{path}/{values.expire_time}")
    elif values.expire_time >= 0:
        raise click.UsageError("Can't expire messages by --expireTime and --position at the same time")
    else:
        api.call("POST", path, body=message_id_json(position, excluded=values.exclude_reset_position))


def _reset(api: Api, values: Values) -> None:
    path = path_of(f"{_SUBSCRIPTION_PATH}/resetcursor", values)
    if values.message_id is not None:
        excluded = getattr(values, "exclude_reset_position", False)
        api.call("POST", path, body=message_id_json(values.message_id, excluded=excluded))
    elif values.time is not None:
        api.call("POST", f"{path}/{round(time.time() * 1000) - values.time * 1000}")
    else:
        raise click.UsageError("Either --time or --messageId has to be provided to reset the cursor")


def _analyze(api: Api, values: Values) -> Any:
    path = path_of(f"{_SUBSCRIPTION_PATH}/analyzeBacklog", values)
    if values.position is None:
        return api.call("POST", path)
    return api.call("POST", path, body=message_id_json(values.position, excluded=False))


LIST = get("subscriptions", "{topic}/subscriptions", "List the subscriptions of a topic.", TOPIC_ARGUMENT, show=lines)
UNSUBSCRIBE = delete(
    "unsubscribe",
    _SUBSCRIPTION_PATH,
    "Delete a subscription.",
    TOPIC_ARGUMENT,
    FORCE,
    SUBSCRIPTION,
    query={"force": "force"},
)


def create_command(*more: click.Option) -> Command:
    return put(
        "create-subscription",
        _SUBSCRIPTION_PATH,
        "Create a subscription, so that it keeps messages before a consumer comes.",
        TOPIC_ARGUMENT,
        SUBSCRIPTION,
        AT,
        PROPERTY,
        *more,
        query={"replicated": lambda values: getattr(values, "replicated", False)},
        body=_create,
        example="orders -s billing --messageId earliest",
    )


SKIP = post(
    "skip",
    f"{_SUBSCRIPTION_PATH}/skip/{{count}}",
    "Skip the next messages of a subscription.",
    TOPIC_ARGUMENT,
    SUBSCRIPTION,
    option("--count", "-n", type=LONG, required=True, help="How many."),
    example="orders -s billing -n 10",
)


def clear_command(name: str) -> Command:
    return post(
        name, f"{_SUBSCRIPTION_PATH}/skip_all", "Skip all messages of a subscription.", TOPIC_ARGUMENT, SUBSCRIPTION
    )


def expire_command(*options: click.Option) -> Command:
    return Command(
        "expire-messages",
        "Acknowledge the old messages of a subscription.",
        _expire,
        (TOPIC_ARGUMENT, SUBSCRIPTION, *options),
        example="orders -s billing --expireTime 2h",
    )


EXPIRE_ALL = post(
    "expire-messages-all-subscriptions",
    "{topic}/all_subscription/expireMessages/{expire_time}",
    "Acknowledge the old messages of every subscription.",
    TOPIC_ARGUMENT,
    EXPIRE_TIME,
)


def reset_command(*more: click.Option) -> Command:
    return Command(
        "reset-cursor",
        "Move a subscription back or ahead, to a time or to a message.",
        _reset,
        (
            TOPIC_ARGUMENT,
            SUBSCRIPTION,
            option("--time", "-t", type=SECONDS, help="To this long ago, like 10m, 3h or 2d."),
            option(
                "--messageId", "-m", type=CURSOR_POSITION, help="To this message: latest, earliest or ledgerId:entryId."
            ),
            *more,
        ),
        example="orders -s billing --time 1h",
    )


COMMANDS = (
    LIST,
    UNSUBSCRIBE,
    create_command(option("--replicated", "-r", flag=True, help="Replicate it to other clusters.")),
    Command(
        "update-subscription-properties",
        "Replace the properties of a subscription.",
        _update_properties,
        (TOPIC_ARGUMENT, SUBSCRIPTION, PROPERTY, option("--clear", "-c", flag=True, help="Remove them all.")),
    ),
    get(
        "get-subscription-properties",
        f"{_SUBSCRIPTION_PATH}/properties",
        "Show the properties of a subscription.",
        TOPIC_ARGUMENT,
        SUBSCRIPTION,
        show=compact,
    ),
    SKIP,
    clear_command("clear-backlog"),
    expire_command(
        option("--expireTime", "-t", type=SECONDS, default="-1", help="Older than this, like 10s, 3h or 2d."),
        option("--position", "-p", type=POSITION, help="Up to this message: ledgerId:entryId."),
        option("--exclude-reset-position", "-e", flag=True, help="But not that one."),
    ),
    EXPIRE_ALL,
    reset_command(EXCLUDE),
    post(
        "set-replicated-subscription-status",
        f"{_SUBSCRIPTION_PATH}/replicatedSubscriptionStatus",
        "Say whether a subscription is replicated.",
        TOPIC_ARGUMENT,
        SUBSCRIPTION,
        option("--enable", "-e", flag=True, help="It is."),
        option("--disable", "-d", flag=True, help="It is not."),
        body=lambda values: either(values, "enable", "disable"),
    ),
    get(
        "get-replicated-subscription-status",
        f"{_SUBSCRIPTION_PATH}/replicatedSubscriptionStatus",
        "Show whether a subscription is replicated.",
        TOPIC_ARGUMENT,
        SUBSCRIPTION,
        show=pairs,
    ),
    Command(
        "analyze-backlog",
        "Count what a subscription has yet to acknowledge, entry by entry.",
        _analyze,
        (TOPIC_ARGUMENT, SUBSCRIPTION, option("--position", "-p", type=POSITION, help="From this message on.")),
        value,
    ),
)
