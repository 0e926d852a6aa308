"""Rules as JSON: the arguments of Faults.add, for REST and the command line.

{"command": "SEND", "action": {"kind": "delay", "seconds": 2}, "stage": "after", "topic": "orders*", "count": null}
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

from pulsarium.broker.lab.faults.actions import ACTIONS, Action
from pulsarium.broker.lab.faults.errors import FaultError
from pulsarium.broker.lab.faults.faults import Faults
from pulsarium.broker.lab.faults.rule import Rule
from pulsarium.proto.commands import Direction

TEXT, NUMBER, WHOLE, NULL = (str,), (int, float), (int,), (type(None),)
WORDS = {str: "a text", int: "a whole number", float: "a number", type(None): "null"}

#: What a rule may have beside `command` and `action`, by its JSON name: the argument of Faults.add, and its JSON types.
ARGUMENTS: Mapping[str, tuple[str, tuple[type, ...]]] = {
    "sender": ("sender", TEXT + NULL),
    "stage": ("stage", TEXT),
    "topic": ("topic", TEXT),
    "clientVersion": ("client_version", TEXT),
    "producer": ("producer", TEXT),
    "consumer": ("consumer", TEXT),
    "subscription": ("subscription", TEXT),
    "broker": ("broker", WHOLE + NULL),
    "skip": ("skip", WHOLE),
    "every": ("every", WHOLE),
    "count": ("count", WHOLE + NULL),
    "probability": ("probability", NUMBER),
    "seed": ("seed", WHOLE + NULL),
}
NAMES = ("command", "action", *ARGUMENTS)
OF_FIELDS: Mapping[str, tuple[type, ...]] = {"int": WHOLE, "float": NUMBER, "str": TEXT, "int | str": WHOLE + TEXT}


def add_from_json(faults: Faults, value: object) -> Rule:
    """Make the rule. Raises FaultError, which says what is allowed."""
    if not isinstance(value, Mapping):
        raise FaultError(f"a fault is an object of {', '.join(NAMES)}")
    _check_names(value, NAMES, "a fault")
    for name in ("command", "action"):
        if name not in value:
            raise FaultError(f"a fault needs {name}")
    command = _typed("command", value["command"], TEXT)
    action = action_from_json(value["action"])
    arguments: dict[str, Any] = {}
    if action.kind == "observe":
        arguments["count"] = None
    for name, (argument, types) in ARGUMENTS.items():
        if name in value:
            arguments[argument] = _typed(name, value[name], types)
    return faults.add(action, command, **arguments)


def action_from_json(value: object) -> Action:
    """{"kind": "delay", "seconds": 1}, or "drop" for one that needs no more. Raises FaultError."""
    if isinstance(value, str):
        value = {"kind": value}
    if not isinstance(value, Mapping):
        raise FaultError(f"action is an object with kind, which is one of {', '.join(ACTIONS)}")
    kind = value.get("kind")
    if not isinstance(kind, str) or kind not in ACTIONS:
        raise FaultError(f"no action {kind!r}; there are {', '.join(ACTIONS)}")
    action = ACTIONS[kind]
    fields = {field.name: OF_FIELDS[str(field.type)] for field in dataclasses.fields(action)}
    given = {name: each for name, each in value.items() if name != "kind"}
    _check_names(given, fields, f"the action {kind}")
    return action(**{name: _typed(name, each, fields[name]) for name, each in given.items()})


def action_to_json(action: Action) -> dict[str, Any]:
    """The opposite."""
    return {"kind": action.kind, **dataclasses.asdict(action)}


def rule_to_json(rule: Rule) -> dict[str, Any]:
    """A rule with what it has done so far; a predicate cannot be shown."""
    selector, occurrence = rule.selector, rule.occurrence
    return {
        "id": rule.id,
        "command": selector.command,
        "action": action_to_json(rule.action),
        "sender": None if selector.sender is Direction.BOTH else selector.sender.value,
        "stage": rule.stage,
        "topic": selector.topic,
        "clientVersion": selector.client_version,
        "producer": selector.producer,
        "consumer": selector.consumer,
        "subscription": selector.subscription,
        "broker": selector.broker,
        "skip": occurrence.skip,
        "every": occurrence.every,
        "count": occurrence.count,
        "probability": occurrence.probability,
        "seed": occurrence.seed,
        "hits": rule.hits,
        "matched": rule.matched,
        "spent": occurrence.spent,
    }


def _check_names(given: Iterable[object], known: Iterable[str], what: str) -> None:
    allowed = list(known)
    for name in given:
        if name not in allowed:
            has = f"has {', '.join(allowed)}" if allowed else "has nothing more"
            raise FaultError(f"{what} has no {name!r}; it {has}")


def _typed(name: str, value: object, types: tuple[type, ...]) -> Any:
    if isinstance(value, bool) or not isinstance(value, types):
        raise FaultError(f"{name} is {value!r}; it is {' or '.join(WORDS[each] for each in types)}")
    return value
