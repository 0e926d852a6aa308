"""Connections on which the broker answers the smallest command of each kind."""

from __future__ import annotations

from pulsarium.proto.commands import CommandSpec
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.wire import TOPIC, Bed, Type, Wire
from yardsticks.bench.minimal import answerable_command


def name_of(spec: CommandSpec) -> str:
    return spec.name


def command_of(spec: CommandSpec) -> pb.BaseCommand:
    """Return the smallest valid command of this kind, with ids and names that the broker can answer."""
    return answerable_command(spec, TOPIC, "sub")


async def at_work(bed: Bed, spec: CommandSpec) -> Wire:
    """Return a connection on which the broker answers the command. It has a producer 0 and a consumer 0 where they do
    not interfere."""
    if spec.type == Type.CONNECT:
        return bed.dial()
    wire = await bed.connect(flags=["supports_topic_watchers"])
    if spec.type != Type.PRODUCER:
        await wire.producer()
    await wire.subscribe()
    return wire
