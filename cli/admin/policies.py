"""The commands of policies: get, set and remove, of namespaces and of topics alike."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from pulsarium.rest import policies as rows
from pulsarium.rest.policies import Place, Policy

from .api import Api
from .command import Command, Run, Values, argument, does, option, shows
from .forms import FORMS, QUOTA_TYPE, Form
from .values import NAMESPACE, TOPIC

if TYPE_CHECKING:
    from pulsarium.rest.policy_calls import PoliciesOf, PolicyCalls


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose policies: the argument that names it, the calls for them, and whether --global and hidden."""

    of: click.Argument
    noun: str
    calls: "Callable[[Api], PoliciesOf[Any]]"
    place: Callable[[Policy[Any]], Place | None]
    everywhere: bool = False  # has --global
    hidden: bool = False

    def named(self, values: Values) -> Any:
        """Return the namespace or topic of a command line."""
        return getattr(values, self.noun)


NAMESPACES = Scope(
    argument("namespace", NAMESPACE), "namespace", lambda api: api.namespace_policies, lambda row: row.namespace
)
TOPIC_POLICIES = Scope(
    argument("topic", TOPIC), "topic", lambda api: api.topic_policies, lambda row: row.topic, everywhere=True
)
TOPICS = replace(TOPIC_POLICIES, everywhere=False, hidden=True)

GLOBAL = option("--global", "-g", flag=True, help="The policy of all clusters, not of this one alone.")


def applied(short: str = "-ap") -> click.Option:
    return option("--applied", short, flag=True, help="What holds in the end: also from the namespace or the broker.")


def policy(
    scope: Scope,
    row: Policy[Any],
    name: str,
    form: Form | None = None,
    *,
    applied: click.Option | None = None,
    calls: "Callable[[Api, Values], PolicyCalls[Any, Any]] | None" = None,
    more: tuple[click.Parameter, ...] = (),
    removable: bool = True,
    example: str = "",
    hidden: bool | None = None,
) -> list[Command]:
    """`get-NAME`, `set-NAME` and `remove-NAME`, as far as there are such calls.

    `form` is another than that of the row. `applied` is an option of get, `more` are options of get and remove. `calls`
    are others than those of the row.
    """
    place, form = scope.place(row), form or FORMS[row]
    assert place is not None, row.kept
    anywhere = (GLOBAL,) if scope.everywhere and not place.is_local else ()
    looks = (applied,) if applied else ()
    found = calls or (lambda api, values: scope.calls(api)[row])

    def get(api: Api, values: Values) -> Coroutine[Any, Any, Any]:
        is_applied = getattr(values, "applied", False)
        return found(api, values).get(scope.named(values), applied=is_applied, is_global=is_global(values))

    def set_(api: Api, values: Values) -> Coroutine[Any, Any, Any]:
        return found(api, values).set(scope.named(values), form.body(values), is_global=is_global(values))

    def remove(api: Api, values: Values) -> Coroutine[Any, Any, Any]:
        return found(api, values).remove(scope.named(values), is_global=is_global(values))

    return three(
        scope,
        name,
        form,
        (get, (*looks, *anywhere, *more)),
        (set_, (*form.options, *anywhere)),
        (remove, (*anywhere, *more)) if removable and place.removal else None,
        example=example,
        hidden=scope.hidden if hidden is None else hidden,
    )


def backlog_quota(
    scope: Scope, get_name: str, form: Form, *, applied: click.Option | None = None, example: str = ""
) -> list[Command]:
    """The quotas of both kinds are got at once, and set and removed one by one."""
    anywhere = (GLOBAL,) if scope.everywhere else ()

    def get(api: Api, v: Values) -> Coroutine[Any, Any, Any]:
        is_applied = getattr(v, "applied", False)
        return scope.calls(api)[rows.BACKLOG_QUOTAS].get(scope.named(v), applied=is_applied, is_global=is_global(v))

    def set_(api: Api, v: Values) -> Coroutine[Any, Any, Any]:
        return scope.calls(api).set_backlog_quota(scope.named(v), form.body(v), v.type, is_global=is_global(v))

    def remove(api: Api, v: Values) -> Coroutine[Any, Any, Any]:
        return scope.calls(api).remove_backlog_quota(scope.named(v), v.type, is_global=is_global(v))

    got, *others = three(
        scope,
        "backlog-quota",
        form,
        (get, (*((applied,) if applied else ()), *anywhere)),
        (set_, (*form.options, *anywhere)),
        (remove, (*anywhere, QUOTA_TYPE)),
        example=example,
        hidden=scope.hidden,
    )
    return [replace(got, name=get_name), *others]


Called = tuple[Run, tuple[click.Parameter, ...]]


def three(
    scope: Scope, name: str, form: Form, get: Called, set_: Called, remove: Called | None, *, example: str, hidden: bool
) -> list[Command]:
    """The commands of a policy, each by what it calls and its options."""
    what, of_noun = form.what, f"of a {scope.noun}"
    commands = [
        shows(
            f"get-{name}",
            get[0],
            f"Show {what} {of_noun}; null if it is not set there.",
            scope.of,
            *get[1],
            show=form.show,
            hidden=hidden,
        ),
        does(f"set-{name}", set_[0], f"Set {what} {of_noun}.", scope.of, *set_[1], hidden=hidden, example=example),
    ]
    if remove is not None:
        commands.append(
            does(f"remove-{name}", remove[0], f"Remove {what} {of_noun}.", scope.of, *remove[1], hidden=hidden)
        )
    return commands


def is_global(values: Values) -> bool:
    return getattr(values, "global_", False)
