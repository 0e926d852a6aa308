"""The get, set and remove commands of policies, for namespaces and topics alike."""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from pulsarium.cli.admin.api import Api
from pulsarium.cli.admin.command import AdminCommand, Body, Show, Values, argument, option
from pulsarium.cli.admin.forms import FORMS, QUOTA_TYPE, PolicyForm
from pulsarium.cli.admin.output import value
from pulsarium.cli.admin.values import NAMESPACE, TOPIC
from pulsarium.rest import policies as rows
from pulsarium.rest.policies import Policy, PolicyPath
from pulsarium.rest.policy_calls import NamespacePolicies, TopicPolicies

if TYPE_CHECKING:
    from pulsarium.rest.policy_calls import PoliciesOf, PolicyCalls


Calls = Callable[[Api, Values], "PolicyCalls[Any, Any]"]


@dataclass(frozen=True, slots=True)
class Scope:
    """The owner of policies: the argument that names it, the calls for its policies, and whether it has --global."""

    of: click.Argument
    noun: str
    calls: Callable[[Api], PoliciesOf[Any]]
    place: Callable[[Policy[Any]], PolicyPath | None]
    everywhere: bool = False  # has --global
    hidden: bool = False

    def named(self, values: Values) -> Any:
        """Return the namespace or topic of a command line."""
        return getattr(values, self.noun)

    def gets(
        self,
        row: Policy[Any],
        name: str,
        help: str,
        *params: click.Parameter,
        show: Show = value,
        calls: Calls | None = None,
        hidden: bool = False,
    ) -> AdminCommand:
        """Return a command that shows a policy. `calls` replace those of the row."""
        found = calls or self._calls(row)

        def run(api: Api, values: Values) -> Coroutine[Any, Any, Any]:
            is_applied = getattr(values, "applied", False)
            return found(api, values).get(self.named(values), applied=is_applied, is_global=is_global(values))

        return AdminCommand(name, help, run, (self.of, *params), show, hidden)

    def sets(
        self,
        row: Policy[Any],
        name: str,
        help: str,
        *params: click.Parameter,
        body: Body,
        calls: Calls | None = None,
        hidden: bool = False,
        example: str = "",
    ) -> AdminCommand:
        """Return a command that sets a policy to the value from `body`."""
        found = calls or self._calls(row)

        def run(api: Api, values: Values) -> Coroutine[Any, Any, Any]:
            return found(api, values).set(self.named(values), body(values), is_global=is_global(values))

        return AdminCommand(name, help, run, (self.of, *params), hidden=hidden, example=example)

    def removes(
        self,
        row: Policy[Any],
        name: str,
        help: str,
        *params: click.Parameter,
        calls: Calls | None = None,
        hidden: bool = False,
    ) -> AdminCommand:
        """Return a command that removes a policy."""
        found = calls or self._calls(row)

        def run(api: Api, values: Values) -> Coroutine[Any, Any, Any]:
            return found(api, values).remove(self.named(values), is_global=is_global(values))

        return AdminCommand(name, help, run, (self.of, *params), hidden=hidden)

    def _calls(self, row: Policy[Any]) -> Calls:
        return lambda api, values: self.calls(api)[row]


NAMESPACES = Scope(argument("namespace", NAMESPACE), "namespace", NamespacePolicies, lambda row: row.namespace)
TOPIC_POLICIES = Scope(argument("topic", TOPIC), "topic", TopicPolicies, lambda row: row.topic, everywhere=True)
TOPICS = replace(TOPIC_POLICIES, everywhere=False, hidden=True)

GLOBAL = option("--global", "-g", flag=True, help="Use the policy of all clusters instead of this cluster's.")


def applied(short: str = "-ap") -> click.Option:
    return option(
        "--applied", short, flag=True, help="Show the policy in effect, also from the namespace or the broker."
    )


def dashed(place: PolicyPath) -> str:
    """Return the word of a policy's path as commands write it: max-topics-per-namespace."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", place.word).lower()


def policy(
    scope: Scope,
    row: Policy[Any],
    form: PolicyForm | None = None,
    *,
    name: str = "",
    applied: click.Option | None = None,
    calls: Calls | None = None,
    more: tuple[click.Parameter, ...] = (),
    removable: bool = True,
    example: str = "",
    hidden: bool | None = None,
) -> list[AdminCommand]:
    """Return the commands `get-NAME`, `set-NAME` and `remove-NAME`, as far as the REST API has these calls.

    `form` and `calls` replace those of the row, and `name` that of the path. `applied` is an option of get, `more` are
    options of get and remove.
    """
    place, form = scope.place(row), form or FORMS[row]
    assert place is not None, row.kept
    name = name or dashed(place)
    anywhere = (GLOBAL,) if scope.everywhere and not place.is_local else ()
    looks = (applied,) if applied else ()
    what = f"{form.what} of a {scope.noun}"
    hides = scope.hidden if hidden is None else hidden
    got = f"Show {what}; null if it is not set."
    commands = [
        scope.gets(row, f"get-{name}", got, *looks, *anywhere, *more, show=form.show, calls=calls, hidden=hides),
        scope.sets(
            row,
            f"set-{name}",
            f"Set {what}.",
            *form.options,
            *anywhere,
            body=form.body,
            calls=calls,
            hidden=hides,
            example=example,
        ),
    ]
    if removable and place.removal:
        commands.append(
            scope.removes(row, f"remove-{name}", f"Remove {what}.", *anywhere, *more, calls=calls, hidden=hides)
        )
    return commands


def backlog_quota(
    scope: Scope, get_name: str, form: PolicyForm, *, applied: click.Option | None = None, example: str = ""
) -> list[AdminCommand]:
    """Return the commands for backlog quotas: get shows both kinds, set and remove take one kind."""

    def set_(api: Api, v: Values) -> Coroutine[Any, Any, Any]:
        return scope.calls(api).set_backlog_quota(scope.named(v), form.body(v), v.type, is_global=is_global(v))

    def remove(api: Api, v: Values) -> Coroutine[Any, Any, Any]:
        return scope.calls(api).remove_backlog_quota(scope.named(v), v.type, is_global=is_global(v))

    got, set_one = policy(scope, rows.BACKLOG_QUOTAS, form, applied=applied, example=example, name="backlog-quota")
    removes = f"Remove {form.what} of a {scope.noun}."
    anywhere = (GLOBAL,) if scope.everywhere else ()
    params = (scope.of, *anywhere, QUOTA_TYPE)
    return [
        replace(got, name=get_name),
        replace(set_one, run=set_),
        AdminCommand("remove-backlog-quota", removes, remove, params, hidden=scope.hidden),
    ]


def is_global(values: Values) -> bool:
    return getattr(values, "global_", False)
