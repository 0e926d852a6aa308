"""The commands of `topics` that concern subscriptions and their cursors."""

from __future__ import annotations

import time

import click

from pulsarium.cli.admin.api import Api
from pulsarium.cli.admin.command import AdminCommand, Values, either, of, option
from pulsarium.cli.admin.messages import SUBSCRIPTION, TOPIC_ARGUMENT, of_subscription, of_topic
from pulsarium.cli.admin.output import compact, lines, pairs
from pulsarium.cli.admin.values import CURSOR_POSITION, LONG, POSITION, SECONDS, key_values
from pulsarium.rest.topics import Topics

FORCE = option("--force", "-f", flag=True, help="Delete also while consumers are connected.")
AT = option(
    "--messageId",
    "-m",
    type=CURSOR_POSITION,
    default="latest",
    help="The position: latest, earliest or ledgerId:entryId.",
)
PROPERTY = option("--property", "-p", many=True, metavar="KEY=VALUE", help="Set a property. May be repeated.")
EXPIRE_TIME = option(
    "--expireTime", "-t", type=SECONDS, required=True, help="Expire messages older than this, like 10s, 3h or 2d."
)
EXCLUDE = option("--exclude-reset-position", "-e", flag=True, help="Begin after the message instead of with it.")


async def _update_properties(api: Api, values: Values) -> None:
    properties = key_values(values.property)
    if not properties and not values.clear:
        raise click.UsageError("If you want to clear the properties you have to use --clear")
    if properties and values.clear:
        raise click.UsageError("If you set --clear then you should not pass any properties")
    await Topics(api).update_subscription_properties(values.topic, values.subscription, properties)


async def _expire(api: Api, values: Values) -> None:
    position = getattr(values, "position", None)
    if hasattr(values, "position") and values.expire_time < 0 and position is None:
        raise click.UsageError("Either --expireTime or --position has to be provided to expire messages")
    of = (values.topic, values.subscription)
    if position is None:
        await Topics(api).expire_messages(*of, values.expire_time)
    elif values.expire_time >= 0:
        raise click.UsageError("Can't expire messages by --expireTime and --position at the same time")
    else:
        await Topics(api).expire_messages_up_to(*of, position, is_excluded=values.exclude_reset_position)


async def _reset(api: Api, values: Values) -> None:
    of = (values.topic, values.subscription)
    if values.message_id is not None:
        excluded = getattr(values, "exclude_reset_position", False)
        await Topics(api).reset_cursor_to(*of, values.message_id, is_excluded=excluded)
    elif values.time is not None:
        await Topics(api).reset_cursor(*of, round(time.time() * 1000) - values.time * 1000)
    else:
        raise click.UsageError("Either --time or --messageId has to be provided to reset the cursor")


LIST = of_topic.shows("subscriptions", Topics.get_subscriptions, "List the subscriptions of a topic.", show=lines)
UNSUBSCRIBE = of_topic.does("unsubscribe", Topics.delete_subscription, "Delete a subscription.", FORCE, SUBSCRIPTION)


def create_command(*more: click.Option) -> AdminCommand:
    return of_subscription.does(
        "create-subscription",
        Topics.create_subscription,
        "Create a subscription, which keeps messages for later consumers.",
        AT,
        PROPERTY,
        *more,
        example="orders -s billing --messageId earliest",
        properties=lambda v: key_values(v.property),
    )


SKIP = of_subscription.does(
    "skip",
    Topics.skip_messages,
    "Skip the next messages of a subscription.",
    option("--count", "-n", type=LONG, required=True, help="Skip this many messages."),
    example="orders -s billing -n 10",
)


def clear_command(name: str) -> AdminCommand:
    return of_subscription.does(name, Topics.skip_all_messages, "Skip all messages of a subscription.")


def expire_command(*options: click.Option) -> AdminCommand:
    return AdminCommand(
        "expire-messages",
        "Expire old messages of a subscription.",
        _expire,
        (TOPIC_ARGUMENT, SUBSCRIPTION, *options),
        example="orders -s billing --expireTime 2h",
    )


EXPIRE_ALL = of_topic.does(
    "expire-messages-all-subscriptions",
    Topics.expire_messages_for_all_subscriptions,
    "Expire old messages of all subscriptions.",
    EXPIRE_TIME,
    seconds=of("expire_time"),
)


def reset_command(*more: click.Option) -> AdminCommand:
    return AdminCommand(
        "reset-cursor",
        "Move a subscription to a time or to a message.",
        _reset,
        (
            TOPIC_ARGUMENT,
            SUBSCRIPTION,
            option("--time", "-t", type=SECONDS, help="Go back by this time, such as 10m, 3h or 2d."),
            option(
                "--messageId",
                "-m",
                type=CURSOR_POSITION,
                help="Move to this message: latest, earliest or ledgerId:entryId.",
            ),
            *more,
        ),
        example="orders -s billing --time 1h",
    )


COMMANDS = (
    LIST,
    UNSUBSCRIBE,
    create_command(option("--replicated", "-r", flag=True, help="Replicate the subscription to other clusters.")),
    AdminCommand(
        "update-subscription-properties",
        "Replace the properties of a subscription.",
        _update_properties,
        (TOPIC_ARGUMENT, SUBSCRIPTION, PROPERTY, option("--clear", "-c", flag=True, help="Remove all properties.")),
    ),
    of_subscription.shows(
        "get-subscription-properties",
        Topics.get_subscription_properties,
        "Show the properties of a subscription.",
        show=compact,
    ),
    SKIP,
    clear_command("clear-backlog"),
    expire_command(
        option(
            "--expireTime",
            "-t",
            type=SECONDS,
            default="-1",
            help="Expire messages older than this, like 10s, 3h or 2d.",
        ),
        option("--position", "-p", type=POSITION, help="Expire messages up to this one: ledgerId:entryId."),
        option("--exclude-reset-position", "-e", flag=True, help="Do not expire the message at --position."),
    ),
    EXPIRE_ALL,
    reset_command(EXCLUDE),
    of_subscription.does(
        "set-replicated-subscription-status",
        Topics.set_replicated_subscription_status,
        "Turn replication of a subscription on or off.",
        option("--enable", "-e", flag=True, help="Replicate the subscription."),
        option("--disable", "-d", flag=True, help="Do not replicate the subscription."),
        enabled=lambda v: either(v, "enable", "disable"),
    ),
    of_subscription.shows(
        "get-replicated-subscription-status",
        Topics.get_replicated_subscription_status,
        "Show whether a subscription is replicated.",
        show=pairs,
    ),
    of_subscription.shows(
        "analyze-backlog",
        Topics.analyze_subscription_backlog,
        "Count the backlog of a subscription, entry by entry.",
        option("--position", "-p", dest="start", type=POSITION, help="Start at this message."),
    ),
)
