"""Complete what only a running broker knows, and names of this package, for the completions of shells.

Each function takes the arguments of click's `shell_complete`. It returns nothing where no broker answers, because a
shell must not wait and cannot show an error.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final

import click
from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from pulsarium.cli.admin.asked import AdminRun

PATIENCE: Final = 2  # seconds for the answer of a broker
MOST: Final = 500
VARIABLES: Final = ("PULSARIUM_ADMIN_URL", "PULSAR_ADMIN_URL")
"""The variables of --admin-url, for the commands that have only the URL of Pulsar's protocol."""
_FULL: Final = "://"

Items = list[CompletionItem]


def topics(context: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Return topics by their shortest names, or by their full names after `persistent://`."""
    from pulsarium.cli.admin.errors import AdminError
    from pulsarium.cli.look.console import Console, short

    session = _session(context)
    names: Iterable[str] = ()
    with suppress(AdminError, click.UsageError):
        try:
            found = Console(session).get("topics", filter=incomplete, limit=MOST)["topics"]
            names = [row["name"] for row in found]
        except AdminError:
            names = _of_namespace(session, incomplete)
    shown = names if _FULL in incomplete else map(short, names)
    return _items(shown, incomplete)


def _of_namespace(session: AdminRun, incomplete: str) -> list[str]:
    """Return the topics of the namespace that the text names, of any Pulsar."""
    from pulsarium.cli.admin.api import done
    from pulsarium.rest.topics import Topics

    tenant, namespace, *rest = f"{incomplete.rpartition(_FULL)[2]}/".split("/")
    return done(Topics(session.api).get_list(f"{tenant}/{namespace}" if len(rest) > 1 else "public/default"))


def subscriptions(context: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Return the subscriptions of the topic on the command line."""
    from pulsarium.cli.admin.api import done
    from pulsarium.cli.admin.errors import AdminError
    from pulsarium.rest.topics import Topics

    # Behind an option that still lacks its value, click has not assigned the arguments.
    topic = context.params.get("topic") or next(iter(context.args), None)
    if topic is None:
        return []
    with suppress(AdminError, click.UsageError, ValueError):
        return _items(done(Topics(_session(context).api).get_subscriptions(topic)), incomplete)
    return []


def faults(context: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Return the numbers of the faults of the broker, each with its command and action."""
    from pulsarium.cli.admin.errors import AdminError
    from pulsarium.cli.lab.broker import LabOf

    with suppress(AdminError, click.UsageError):
        rules = LabOf(_session(context)).call("GET", "faults")
        return [
            CompletionItem(str(rule["id"]), help=f"{rule['command']} {rule['action']['kind']}, {rule['hits']} hits")
            for rule in rules
            if str(rule["id"]).startswith(incomplete)
        ]
    return []


def commands(context: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Return the commands of Pulsar's protocol."""
    from pulsarium.proto.commands import COMMANDS

    return _items((spec.name for spec in COMMANDS.values()), incomplete.upper())


def keys(context: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Return the keys of broker.conf that take effect, each with its meaning."""
    from pulsarium.broker.config.keys import documented_keys

    return [
        CompletionItem(f"{name}=", help=key.meaning.doc)
        for name, key in documented_keys().items()
        if name.startswith(incomplete)
    ]


def _items(names: Iterable[str], incomplete: str) -> Items:
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def _session(context: click.Context) -> AdminRun:
    """Return the broker that the options of the command line and of its groups name."""
    from pulsarium.cli.admin.asked import AdminRun

    given: dict[str, Any] = {}
    place: click.Context | None = context
    while place is not None:
        for each in fields(AdminRun):
            if place.params.get(each.name) is not None:
                given.setdefault(each.name, place.params[each.name])
        place = place.parent
    if given.get("admin_url") is None:
        given["admin_url"] = next(filter(None, map(os.environ.get, VARIABLES)), None)
    return AdminRun(**{**given, "wait": 0.0, "request_timeout": PATIENCE})
