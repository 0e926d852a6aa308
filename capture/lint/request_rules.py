"""Rules of requests and their answers, and of the names in them."""

from __future__ import annotations

from collections.abc import Iterator

from pulsarium.capture.lint.exchanges import answered_key
from pulsarium.capture.lint.frames import Frame
from pulsarium.capture.lint.rule import rule
from pulsarium.capture.lint.state import State
from pulsarium.proto.commands import COMMANDS, Direction
from pulsarium.proto.errors import InvalidTopicName
from pulsarium.proto.generated.PulsarApi_pb2 import BaseCommand, Schema
from pulsarium.proto.topic_name import TopicName

_T = BaseCommand
_NAME_TOPICS = {"GET_OR_CREATE_SCHEMA", "GET_SCHEMA", "LOOKUP", "PARTITIONED_METADATA", "PRODUCER", "SUBSCRIBE"}
_SCHEMA_VERSION_BYTES = 8


def _answers(frame: Frame) -> bool:
    """Whether the frame can only be an answer, by its request_id."""
    return (
        frame.spec is not None
        and frame.spec.direction is Direction.BROKER
        and frame.request_id is not None
        and answered_key(frame) == ("request_id", frame.request_id)
    )


@rule(
    "request-id-reused",
    "A request_id is free while its request waits for an answer.",
    "PulsarApi.proto: request_id",
    "Count request ids up, per client or per connection.",
)
def _reused(state: State, frame: Frame) -> Iterator[str]:
    if frame.request_id is not None and frame.sender is Direction.CLIENT:
        waiting = state.matcher.first(("request_id", frame.request_id))
        if waiting is not None:
            yield f"request {frame.request_id} of {frame.name} is still that of {waiting.name}"


@rule(
    "answer-to-nothing",
    "An answer has the request_id of a request.",
    "PulsarApi.proto: request_id",
    "Answer with the id of the request.",
    about=Direction.BROKER,
)
def _nothing(state: State, frame: Frame) -> Iterator[str]:
    if _answers(frame) and state.matcher.request_of(frame) is None and frame.request_id not in state.answered:
        yield f"{frame.name} to request {frame.request_id}, which nobody made"


@rule(
    "answered-twice",
    "A request is answered once.",
    "PulsarApi.proto: request_id",
    "Answer each request once.",
    about=Direction.BROKER,
)
def _twice(state: State, frame: Frame) -> Iterator[str]:
    if _answers(frame) and state.matcher.request_of(frame) is None and frame.request_id in state.answered:
        yield f"{frame.name} to request {frame.request_id}, which has its answer"


@rule(
    "wrong-answer",
    "A request is answered by the command that belongs to it, or by ERROR.",
    "PulsarApi.proto",
    "Answer with the command that docs/commands.md names.",
    about=Direction.BROKER,
)
def _kind(state: State, frame: Frame) -> Iterator[str]:
    request = state.matcher.request_of(frame)
    if request is None or frame.spec is None or request.spec is None or not _answers(frame):
        return
    if frame.spec.type not in (request.spec.reply, _T.ERROR):
        wanted = COMMANDS[request.spec.reply or 0].name
        yield f"{frame.name} to {request.name}, which {wanted} answers"


@rule(
    "topic-name-invalid",
    "A topic is named domain://tenant/namespace/topic, or by a short form of it.",
    "Pulsar's TopicName; ServerError InvalidTopicName",
    "Check a topic's name where the application gives it.",
    on=_NAME_TOPICS,
)
def _topic_name(state: State, frame: Frame) -> Iterator[str]:
    try:
        TopicName.parse(frame.body.topic)
    except InvalidTopicName as error:
        yield str(error)[:300]


@rule(
    "partitions-ignored",
    "Of a topic that has partitions those are opened, not the topic itself.",
    "Concepts: partitioned topics; ServerError NotAllowedError",
    "Open topic-partition-0 and so on, as many as PARTITIONED_METADATA_RESPONSE says.",
    on=["PRODUCER", "SUBSCRIBE"],
)
def _partitions(state: State, frame: Frame) -> Iterator[str]:
    count = state.partitions.get(frame.topic)
    if count is not None:
        yield f"{frame.name} for {frame.topic}, which has {count} partitions"


@rule(
    "schema-client-side",
    "AUTO_CONSUME is a consumer's wish and no schema that a topic could have.",
    "PulsarApi.proto: Schema.Type",
    "Send the schema that the messages have.",
    on=["GET_OR_CREATE_SCHEMA", "PRODUCER"],
)
def _schema(state: State, frame: Frame) -> Iterator[str]:
    if frame.body.HasField("schema") and frame.body.schema.type == Schema.AutoConsume:
        yield f"{frame.name} with an AUTO_CONSUME schema"


@rule(
    "schema-version-size",
    "A schema version has 8 bytes, big-endian, as a broker gave it.",
    "Pulsar's LongSchemaVersion; PulsarApi.proto: CommandGetSchema",
    "Send the bytes of PRODUCER_SUCCESS or of a message as they came; for the newest version leave the field out.",
    on=["GET_SCHEMA"],
)
def _schema_version(state: State, frame: Frame) -> Iterator[str]:
    body = frame.body
    if body.HasField("schema_version") and len(body.schema_version) != _SCHEMA_VERSION_BYTES:
        yield f"schema_version of {len(body.schema_version)} bytes"
