"""Declare what only drafts of the protocol have, each with the number of its proposal (PIP).

The final protocol may give other numbers to these commands and fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

#: Commands, by their names in BaseCommand.Type.
DRAFT_COMMANDS: Final[Mapping[str, int]] = MappingProxyType({"NEGATIVE_ACK": 493})

#: Fields of other commands, and of messages inside them.
DRAFT_FIELDS: Final[Mapping[str, int]] = MappingProxyType(
    {"CommandMessage.message_permits": 491, "FeatureFlags.supports_key_ordered_negative_ack": 493}
)


def drafts_in(name: str | None, body: Any) -> set[int]:
    """Return the numbers of the proposals that a command, or one of its fields, belongs to."""
    found = set() if body is None else _of_fields(body)
    return found | {number for command, number in DRAFT_COMMANDS.items() if command == name}


def _of_fields(message: Any) -> set[int]:
    found = set[int]()
    for field, value in message.ListFields():
        if number := DRAFT_FIELDS.get(f"{message.DESCRIPTOR.name}.{field.name}"):
            found.add(number)
        elif field.message_type is not None and not field.is_repeated:
            found |= _of_fields(value)
    return found
