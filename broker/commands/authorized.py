"""Authorize commands: check that the role may do what a command asks for, before its handler runs.

SEND, ACK and FLOW are not checked. As in Pulsar, the owner of a producer or a consumer may use it until a change of
policies closes it (broker/auth/revoked.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from pulsarium.broker.auth.authorization import (
    OperationTarget,
    TenantNotFound,
    WrongSubscriptionName,
    of_namespace,
    of_topic,
)
from pulsarium.broker.auth.needs import Needs, ObjectKind, topic_operation
from pulsarium.broker.commands.answers import refusal
from pulsarium.broker.commands.registry import Command
from pulsarium.broker.logs import PartLog
from pulsarium.broker.session.gate import Handler
from pulsarium.broker.session.session import Session
from pulsarium.proto.commands import COMMANDS
from pulsarium.proto.errors import InvalidTopicName
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.text import text_of
from pulsarium.proto.topic_name import NamespaceName, TopicName

log = PartLog("auth")

SUBSCRIBE = topic_operation("SUBSCRIBE")
SUBSCRIBES = (pb.CommandSubscribe, pb.CommandScalableTopicSubscribe)


class Words(NamedTuple):
    """Pulsar's texts for a client without permission: `refused`, and `failed` for a failed check, "" for its error.

    `{topic}` stands for the topic's name.
    """

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
    pb.BaseCommand.GET_SCHEMA: Words("Client is not authorized to get the schema of {topic}"),
    pb.BaseCommand.GET_OR_CREATE_SCHEMA: Words(
        "org.apache.pulsar.broker.service.BrokerServiceException$NotAuthorizedException: "
        "Client is not authorized to add a schema to {topic}"
    ),
    pb.BaseCommand.GET_TOPICS_OF_NAMESPACE: Words(
        "Client is not authorized to GetTopicsOfNamespace",
        "Exception occurred while trying to authorize GetTopicsOfNamespace",
    ),
    pb.BaseCommand.WATCH_TOPIC_LIST: Words(
        "Proxy Client is not authorized to watchTopicList",
        "Exception occurred while trying to handle command WatchTopicList",
    ),
}


class RefusedCommand(NamedTuple):
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
        about = session.concerned(command, cmd)
        log.warning("not authorized", peer=session, **about, role=session.principal, needs=needs, reason=refused.text)
        answer(session, command, cmd, refused)

    return checked


def check(session: Session, command: int, needs: Needs, cmd: Any) -> RefusedCommand | None:
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
            return RefusedCommand(text, pb.TopicNotFound)
        return RefusedCommand(words.failed or f"org.apache.pulsar.broker.web.RestException: {error}")
    except WrongSubscriptionName as error:
        return RefusedCommand(f"org.apache.pulsar.broker.PulsarServerException: {error}")
    return None if allowed else RefusedCommand(words.refused.replace("{topic}", str(target.topic)))


def allows(session: Session, needs: Needs, target: OperationTarget) -> bool:
    """Return whether the client of a session may use a target. Without authorization, every client may."""
    authorization = session.broker.cluster.authorization
    return authorization is None or authorization.allows(session.principal, needs, target)


def target_of(needs: Needs, cmd: Any) -> OperationTarget:
    """Return the target of a command. Raise `InvalidTopicName` when the command names none."""
    if needs.kind is ObjectKind.NAMESPACE:
        return of_namespace(NamespaceName.parse(cmd.namespace))
    subscription = text_of(cmd.subscription) if isinstance(cmd, SUBSCRIBES) else ""
    return of_topic(TopicName.parse(cmd.topic), subscription)


def answer(session: Session, command: int, cmd: Any, refused: RefusedCommand) -> None:
    """Send the refusal in the form of the command's answer."""
    told = refusal(Command(COMMANDS[command], cmd), refused.code, refused.text)
    assert told is not None
    session.command(told)
