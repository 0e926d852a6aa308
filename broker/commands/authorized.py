"""Authorize commands: check that the role may do what a command asks for, before its handler runs.

SEND, ACK and FLOW are not checked. As in Pulsar, the owner of a producer or a consumer may use it until a change of
policies closes it (broker/auth/revoked.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pulsarium.broker.auth.authorization import (
    Target,
    TenantNotFound,
    WrongSubscriptionName,
    of_namespace,
    of_topic,
)
from pulsarium.broker.auth.needs import Kind, Needs, topic_operation
from pulsarium.broker.commands.answers import refusal
from pulsarium.broker.commands.lookup import lookup_failed, metadata_failed
from pulsarium.broker.commands.registry import Command, Handler
from pulsarium.broker.logs import Log
from pulsarium.proto.commands import COMMANDS
from pulsarium.proto.errors import InvalidTopicName
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.text import text_of
from pulsarium.proto.topic_name import NamespaceName, TopicName

if TYPE_CHECKING:
    from pulsarium.broker.session.session import Session

log = Log("auth")

SUBSCRIBE = topic_operation("SUBSCRIBE")
SUBSCRIBES = (pb.CommandSubscribe, pb.CommandScalableTopicSubscribe)


# commands whose own answers have an error and its text
SCALABLE = frozenset(
    {
        pb.BaseCommand.SCALABLE_TOPIC_LOOKUP,
        pb.BaseCommand.SCALABLE_TOPIC_SUBSCRIBE,
        pb.BaseCommand.WATCH_SCALABLE_TOPICS,
    }
)


class Words(NamedTuple):
    """Pulsar's texts for a client without permission: `refused`, and `failed` for a failed check, "" for its error."""

    refused: str
    failed: str = ""


WORDS: Final[Mapping[int, Words]] = {
    pb.BaseCommand.LOOKUP: Words(
        "Client is not authorized to Lookup", "Exception occurred while trying to authorize lookup"
    ),
    pb.BaseCommand.PARTITIONED_METADATA: Words("Client is not authorized to Get Partition Metadata"),
    pb.BaseCommand.PRODUCER: Words("Client is not authorized to Produce"),
    pb.BaseCommand.SUBSCRIBE: Words("Client is not authorized to subscribe"),
    pb.BaseCommand.SCALABLE_TOPIC_LOOKUP: Words("Client is not authorized to ScalableTopicLookup"),
    pb.BaseCommand.SCALABLE_TOPIC_SUBSCRIBE: Words("Client is not authorized to ScalableTopicSubscribe"),
    pb.BaseCommand.WATCH_SCALABLE_TOPICS: Words("Client is not authorized to WatchScalableTopics"),
    pb.BaseCommand.GET_SCHEMA: Words("Client is not authorized to Get Schema"),
    pb.BaseCommand.GET_OR_CREATE_SCHEMA: Words("Client is not authorized to Get Or Create Schema"),
    pb.BaseCommand.GET_TOPICS_OF_NAMESPACE: Words(
        "Client is not authorized to GetTopicsOfNamespace",
        "Exception occurred while trying to authorize GetTopicsOfNamespace",
    ),
    pb.BaseCommand.WATCH_TOPIC_LIST: Words(
        "Proxy Client is not authorized to watchTopicList",
        "Exception occurred while trying to handle command WatchTopicList",
    ),
}


class Refused(NamedTuple):
    """The answer to a command that the role may not send."""

    text: str
    code: pb.ServerError = pb.AuthorizationError


def authorized(command: int, handler: Handler, needs: Needs) -> Handler:
    """Return `handler` behind a check that the role meets `needs`."""

    def checked(session: Session, cmd: Any, trailing: bytes) -> None:
        refused = check(session, command, needs, cmd)
        if refused is None:
            handler(session, cmd, trailing)
            return
        log.warning("not authorized", peer=session, role=session.principal, needs=needs, reason=refused.text)
        answer(session, command, cmd, refused)

    return checked


def check(session: Session, command: int, needs: Needs, cmd: Any) -> Refused | None:
    """Return the refusal of a command, or None if the role may send it."""
    try:
        target = target_of(needs, cmd)
    except InvalidTopicName:
        return None  # the handler refuses the name
    words = WORDS[command]
    try:
        allowed = allows(session, needs, target)
        if allowed and command == pb.BaseCommand.PRODUCER and cmd.initial_subscription_name:
            assert target.topic is not None
            allowed = allows(session, SUBSCRIBE, of_topic(target.topic, text_of(cmd.initial_subscription_name)))
    except TenantNotFound as error:
        if command == pb.BaseCommand.PARTITIONED_METADATA:
            text = f"Tenant or namespace or topic does not exist: {target.namespace}"
            return Refused(text, pb.TopicNotFound)
        return Refused(words.failed or f"org.apache.pulsar.broker.web.RestException: {error}")
    except WrongSubscriptionName as error:
        return Refused(f"org.apache.pulsar.broker.PulsarServerException: {error}")
    return None if allowed else Refused(words.refused)


def allows(session: Session, needs: Needs, target: Target) -> bool:
    """Return whether the client of a session may use a target. Without authorization, every client may."""
    authorization = session.broker.cluster.authorization
    return authorization is None or authorization.allows(session.principal, needs, target)


def target_of(needs: Needs, cmd: Any) -> Target:
    """Return the target of a command. Raise `InvalidTopicName` when the command names none."""
    if needs.kind is Kind.NAMESPACE:
        return of_namespace(NamespaceName.parse(cmd.namespace))
    subscription = text_of(cmd.subscription) if isinstance(cmd, SUBSCRIBES) else ""
    return of_topic(TopicName.parse(cmd.topic), subscription)


def answer(session: Session, command: int, cmd: Any, refused: Refused) -> None:
    """Send the refusal in the form of the command's answer."""
    if command == pb.BaseCommand.LOOKUP:
        lookup = pb.CommandLookupTopicResponse(request_id=cmd.request_id)
        lookup_failed(lookup, refused.code, refused.text)
        session.command(pb.BaseCommand(type=pb.BaseCommand.LOOKUP_RESPONSE, lookupTopicResponse=lookup))
    elif command == pb.BaseCommand.PARTITIONED_METADATA:
        metadata = pb.CommandPartitionedTopicMetadataResponse(request_id=cmd.request_id)
        metadata_failed(metadata, refused.code, refused.text)
        response = pb.BaseCommand.PARTITIONED_METADATA_RESPONSE
        session.command(pb.BaseCommand(type=response, partitionMetadataResponse=metadata))
    elif command == pb.BaseCommand.GET_SCHEMA:
        found = pb.CommandGetSchemaResponse(
            request_id=cmd.request_id, error_code=refused.code, error_message=refused.text
        )
        session.command(pb.BaseCommand(type=pb.BaseCommand.GET_SCHEMA_RESPONSE, getSchemaResponse=found))
    elif command == pb.BaseCommand.GET_OR_CREATE_SCHEMA:
        made = pb.CommandGetOrCreateSchemaResponse(
            request_id=cmd.request_id, error_code=refused.code, error_message=refused.text
        )
        response = pb.BaseCommand.GET_OR_CREATE_SCHEMA_RESPONSE
        session.command(pb.BaseCommand(type=response, getOrCreateSchemaResponse=made))
    elif command in SCALABLE:
        told = refusal(Command(COMMANDS[command], cmd), refused.code, refused.text)
        assert told is not None
        session.command(told)
    else:
        session.error(cmd.request_id, refused.code, refused.text)
