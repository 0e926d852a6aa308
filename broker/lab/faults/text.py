"""Convert rules from and to JSON, with the arguments of Faults.add, for REST and the command line.

{"command": "SEND", "action": {"kind": "delay", "seconds": 2}, "stage": "after", "topic": "orders*", "count": null}
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any, Final

from pulsarium.broker.lab.arguments import ANY, Selected, When, Which, arguments_of, json_arguments
from pulsarium.broker.lab.faults.actions import ACTIONS
from pulsarium.broker.lab.faults.faults import Faults
from pulsarium.broker.lab.faults.rule import Action, InstalledFault
from pulsarium.broker.lab.faults.which import FaultError
from pulsarium.proto.commands import Direction

WORDS = {str: "a text", int: "a whole number", float: "a number", type(None): "null"}
ARGUMENTS: Final = json_arguments(Which)
SELECTED, WHEN = json_arguments(Selected), json_arguments(When)
NAMES = ("command", "action", *ARGUMENTS)


def add_from_json(faults: Faults, value: object) -> InstalledFault:
    """Add the rule that a JSON object describes. Raise `FaultError`, which says what is allowed."""
    if not isinstance(value, Mapping):
        raise FaultError(f"a fault is a JSON object with {', '.join(NAMES)}")
    _check_names(value, NAMES, "a fault")
    for name in ("command", "action"):
        if name not in value:
            raise FaultError(f"a fault needs {name}")
    command = _typed("command", value["command"], (str,))
    action = action_from_json(value["action"])
    arguments: dict[str, Any] = {}
    if action.kind == "observe":
        arguments["count"] = None
    for name, argument in ARGUMENTS.items():
        if name in value:
            arguments[argument.name] = _typed(name, value[name], argument.types)
    return faults.add(action, command, **arguments)


def action_from_json(value: object) -> Action:
    """Create an action of {"kind": "delay", "seconds": 1}, or of its kind alone, such as "drop". Raise `FaultError`."""
    if isinstance(value, str):
        value = {"kind": value}
    if not isinstance(value, Mapping):
        raise FaultError(f"action is a JSON object with kind, one of {', '.join(ACTIONS)}")
    kind = value.get("kind")
    if not isinstance(kind, str) or kind not in ACTIONS:
        raise FaultError(f"no action {kind!r}; there are {', '.join(ACTIONS)}")
    action = ACTIONS[kind]
    known = arguments_of(action)
    fields = {field.name: known[field.name].types for field in dataclasses.fields(action)}
    given = {name: each for name, each in value.items() if name != "kind"}
    _check_names(given, fields, f"the action {kind}")
    return action(**{name: _typed(name, each, fields[name]) for name, each in given.items()})


def action_to_json(action: Action) -> dict[str, Any]:
    """Return an action as JSON."""
    return {"kind": action.kind, **dataclasses.asdict(action)}


def rule_to_json(rule: InstalledFault) -> dict[str, Any]:
    """Return a rule and its counts as JSON, without its predicate."""
    which: dict[str, Any] = {**rule.selector.which}
    shown = {name: which.get(each.name, ANY if each.types == (str,) else None) for name, each in SELECTED.items()}
    sender = rule.selector.sender
    return {
        "id": rule.id,
        "command": rule.selector.command,
        "action": action_to_json(rule.action),
        **shown,
        "sender": None if sender is Direction.BOTH else sender.value,
        "stage": rule.stage,
        **{name: getattr(rule.occurrence, each.name) for name, each in WHEN.items()},
        "hits": rule.hits,
        "matched": rule.matched,
        "spent": rule.occurrence.spent,
    }


def _check_names(given: Iterable[object], known: Iterable[str], what: str) -> None:
    allowed = list(known)
    for name in given:
        if name not in allowed:
            has = f"has {', '.join(allowed)}" if allowed else "has no other field"
            raise FaultError(f"{what} has no {name!r}; it {has}")


def _typed(name: str, value: object, types: tuple[type, ...]) -> Any:
    if isinstance(value, bool) or not isinstance(value, types):
        raise FaultError(f"{name} is {value!r}; it must be {' or '.join(WORDS[each] for each in types)}")
    return value
