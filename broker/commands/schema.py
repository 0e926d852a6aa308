"""Handle GET_SCHEMA and GET_OR_CREATE_SCHEMA."""

from __future__ import annotations

from collections.abc import Callable

from pulsarium.broker.auth.needs import topic_operation
from pulsarium.broker.commands.naming import name_of
from pulsarium.broker.commands.registry import handles
from pulsarium.broker.model.errors import TopicNotFoundError
from pulsarium.broker.model.schema.data import SchemaData, SchemaError
from pulsarium.broker.model.schema.registry import Answers
from pulsarium.broker.model.topic.joining import judge_alone, of_producer
from pulsarium.broker.session.gate import CloseConnection
from pulsarium.broker.session.session import Session
from pulsarium.proto.errors import InvalidTopicName
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.topic_name import TopicName


@handles(pb.BaseCommand.GET_SCHEMA, needs=topic_operation("GET_METADATA", unasked=True))
def get_schema(session: Session, cmd: pb.CommandGetSchema, trailing: bytes) -> None:
    """Answer with the latest schema of a topic, or with the requested version: 8 bytes, big-endian."""
    answer = pb.BaseCommand(type=pb.BaseCommand.GET_SCHEMA_RESPONSE)
    reply = answer.getSchemaResponse
    reply.request_id = cmd.request_id
    try:
        name = name_of(session, cmd.topic)
        if cmd.HasField("schema_version") and not cmd.schema_version:
            reply.error_code = pb.IncompatibleSchema
            reply.error_message = "Empty schema version"
        else:
            _find(session, cmd, name, reply)
    except InvalidTopicName as error:
        reply.error_code = pb.InvalidTopicName
        reply.error_message = str(error)
    session.reply_later(answer)


def _find(session: Session, cmd: pb.CommandGetSchema, name: TopicName, reply: pb.CommandGetSchemaResponse) -> None:
    schemas = session.broker.schemas
    if cmd.HasField("schema_version"):
        if len(cmd.schema_version) < 8:
            raise CloseConnection(f"schema version of {len(cmd.schema_version)} bytes")
        found = schemas.get(name, int.from_bytes(cmd.schema_version[:8], "big", signed=True))
    else:
        found = schemas.latest(name)
    if found is None:
        reply.error_code = pb.TopicNotFound
        reply.error_message = f"Topic not found or no-schema {name}"
    else:
        found.schema.fill(reply.schema, name.schema_name)
        reply.schema_version = found.version_bytes


def judged(session: Session, topic: str, sent: pb.Schema, handle: Callable[[SchemaData], None]) -> None:
    """Handle a command with its schema, after a thread has judged a large one."""
    broker, schemas, schema = session.broker, session.broker.schemas, SchemaData.taken_from(sent)
    try:
        name = name_of(session, topic)
    except InvalidTopicName:
        handle(schema)  # which refuses the name
        return
    loaded = broker.topics.loaded.get(str(name))
    schema_name = name if loaded is None else loaded.schema_name
    if not schemas.is_large(schema_name, schema.size):
        handle(schema)
        return
    policy = broker.topics.policies_of(name).schemas
    rehearse = schemas.rehearsal(schema_name, lambda copy: judge_alone(copy, schema_name, policy, schema))

    def handle_knowing(answers: Answers) -> None:
        with schemas.knows(answers):
            handle(schema)

    session.gate.handle_aside(rehearse, handle_knowing)


@handles(pb.BaseCommand.GET_OR_CREATE_SCHEMA, needs=topic_operation("PRODUCE", unasked=True))
def get_or_create_schema(session: Session, cmd: pb.CommandGetOrCreateSchema, trailing: bytes) -> None:
    """Answer with the version of a schema, and add the schema when it is new. The topic must exist."""
    judged(session, cmd.topic, cmd.schema, lambda schema: _get_or_create(session, cmd, schema))


def _get_or_create(session: Session, cmd: pb.CommandGetOrCreateSchema, schema: SchemaData) -> None:
    broker = session.broker
    reply = pb.CommandGetOrCreateSchemaResponse(request_id=cmd.request_id)
    try:
        name = name_of(session, cmd.topic)
    except InvalidTopicName as error:
        if broker.profile.faulty_schema_topics_close:
            raise CloseConnection(str(error)) from None
        reply.error_code = pb.InvalidTopicName
        reply.error_message = str(error)
    else:
        try:
            topic = broker.topics.find(name)
            reply.schema_version = of_producer(broker.schemas, topic, None if schema.type == "NONE" else schema)
        except TopicNotFoundError:
            reply.error_code = pb.TopicNotFound
            reply.error_message = f"Topic not found {name}"
        except SchemaError as error:
            reply.error_code = error.code
            reply.error_message = error.java_text
    if reply.error_message:
        session.note_refusal(pb.BaseCommand.GET_OR_CREATE_SCHEMA, cmd, reply.error_code, reply.error_message)
    answer = pb.BaseCommand(type=pb.BaseCommand.GET_OR_CREATE_SCHEMA_RESPONSE, getOrCreateSchemaResponse=reply)
    session.reply_when_kept(cmd.request_id, answer)
