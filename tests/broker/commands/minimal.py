"""Commands with only their required fields."""

from __future__ import annotations

from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from pulsarium.proto.commands import COMMANDS
from pulsarium.proto.generated import PulsarApi_pb2 as pb

# Values that the broker accepts, by the name of the required field. Other fields are 0 and "x".
SENSIBLE: dict[str, Any] = {
    "topic": "persistent://public/default/minimal",
    "namespace": "public/default",
    "messagePermits": 1,
}


def minimal_command(type: int) -> pb.BaseCommand:
    """Return the smallest valid command of a type."""
    base = pb.BaseCommand()
    base.type = type  # type: ignore[assignment]
    body = getattr(base, COMMANDS[type].field)
    body.SetInParent()
    fill(body)
    assert base.IsInitialized()
    return base


def fill(message: Message) -> None:
    """Set every required field, also those of required messages."""
    for field in message.DESCRIPTOR.fields:
        if not field.is_required:
            continue
        if field.type == FieldDescriptor.TYPE_MESSAGE:
            inner = getattr(message, field.name)
            inner.SetInParent()
            fill(inner)
        elif field.name in SENSIBLE:
            setattr(message, field.name, SENSIBLE[field.name])
        elif field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
            setattr(message, field.name, b"x" if field.type == FieldDescriptor.TYPE_BYTES else "x")
        elif field.enum_type is not None:
            setattr(message, field.name, field.enum_type.values[0].number)
        else:
            setattr(message, field.name, 0)
