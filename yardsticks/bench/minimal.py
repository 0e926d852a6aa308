"""Commands of clients with only their required fields, for floods and tests of every command."""

from __future__ import annotations

from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from pulsarium.proto.commands import COMMANDS, CommandSpec, Direction
from pulsarium.proto.generated.PulsarApi_pb2 import BaseCommand

FROM_CLIENTS = [spec for spec in COMMANDS.values() if spec.direction is not Direction.BROKER]
ID = 77
OTHER_CONSUMER = 9  # of SUBSCRIBE, beside the consumer 0 that other commands use

# Values that the broker accepts, by the name of the required field. Other fields are 0 and "x".
SENSIBLE: dict[str, Any] = {
    "topic": "persistent://public/default/minimal",
    "namespace": "public/default",
    "messagePermits": 1,
}


def minimal_command(type: int) -> BaseCommand:
    """Return the smallest valid command of a type."""
    base = BaseCommand()
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


def answerable_command(spec: CommandSpec, topic: str, subscription: str) -> BaseCommand:
    """Return the smallest valid command of this kind, with ids and names that the broker can answer.

    `topic` and `subscription` exist.
    """
    command = minimal_command(spec.type)
    body: Any = getattr(command, spec.field)
    if "request_id" in body.DESCRIPTOR.fields_by_name:
        body.request_id = ID
    if spec.type == BaseCommand.SUBSCRIBE:
        body.consumer_id = OTHER_CONSUMER
    if spec.type == BaseCommand.END_TXN_ON_PARTITION:
        body.topic = topic
    if spec.type == BaseCommand.END_TXN_ON_SUBSCRIPTION:
        body.subscription.topic, body.subscription.subscription = topic, subscription
    return command
