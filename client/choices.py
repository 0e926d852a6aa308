"""Check options whose value is a member of an enum."""

from __future__ import annotations

import enum
from dataclasses import fields
from typing import Any

from pulsarium.client.errors import InvalidConfiguration
from pulsarium.proto.text import did_you_mean


def check_choices(options: Any) -> None:
    """Raise `InvalidConfiguration` when a field of a dataclass is no member of the enum of its default."""
    for each in fields(options):
        if isinstance(each.default, enum.Enum):
            check_choice(each.name, getattr(options, each.name), type(each.default))


def check_choice(name: str, value: object, choices: type[enum.Enum]) -> None:
    """Raise `InvalidConfiguration` when the value of an option is no member of the enum."""
    if isinstance(value, choices):
        return
    known = {each.name: f"{choices.__name__}.{each.name}" for each in choices}
    meant = known.get(value) if isinstance(value, str) else None
    near = did_you_mean(value, known) if isinstance(value, str) and not meant else ""
    says = f"pass {meant}" if meant else f"pass one of {', '.join(known.values())}" + (f"; {near}" if near else "")
    raise InvalidConfiguration(f"{name} is {value!r}: {says}")
