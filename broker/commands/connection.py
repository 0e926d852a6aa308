"""Handle CONNECT, AUTH_RESPONSE, PING and PONG."""

from __future__ import annotations

from pulsarium.broker.auth.identity import AuthenticationError
from pulsarium.broker.auth.login import Login, RolesRefused, Stale
from pulsarium.broker.commands.registry import handles
from pulsarium.broker.config.profile import (
    COORDINATOR_WATCHES,
    SCALABLE_TOPICS,
    TOPIC_WATCHERS,
    WATCHERS_RECONCILE,
)
from pulsarium.broker.logs import PartLog
from pulsarium.broker.session.gate import CloseConnection
from pulsarium.broker.session.session import Session
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.numbers import NO_REQUEST

# broker.conf keys that switch feature flags
KEYS = {
    TOPIC_WATCHERS: "enableBrokerTopicListWatcher",
    WATCHERS_RECONCILE: "enableBrokerTopicListWatcher",
    SCALABLE_TOPICS: "scalableTopicsEnabled",
    COORDINATOR_WATCHES: "transactionCoordinatorScalableTopicsEnabled",
    "supports_key_ordered_negative_ack": "keySharedNegativeAckOrderingEnabled",
}

OUR_CLIENTS = "Pulsarium"  # prefix of this project's clients, which mean PIP-429 by that version

log = PartLog("session")


@handles(pb.BaseCommand.CONNECT, before_connect=True)
def connect(session: Session, cmd: pb.CommandConnect, trailing: bytes) -> None:
    """Accept a client and its protocol version. The broker's own flags do not depend on the client's."""
    if session.connected:
        raise CloseConnection("a second CONNECT")
    _log_in(session, cmd)
    session.connect(cmd)
    broker = session.broker
    connected = pb.CommandConnected(
        server_version=session.profile.server_version,
        protocol_version=session.capabilities.agreed,
        max_message_size=broker.config.maxMessageSize,
    )
    for flag in session.profile.flags:  # a broker without flags omits the field
        setattr(connected.feature_flags, flag, getattr(broker.config, KEYS[flag]) if flag in KEYS else True)
    log.info(
        "connection opened",
        peer=session,
        client=session.client_version,
        protocol=cmd.protocol_version,
        role=None if session.login is None else session.principal,
    )
    _note_last_entries(session)
    session.command(pb.BaseCommand(type=pb.BaseCommand.CONNECTED, connected=connected))


def _note_last_entries(session: Session) -> None:
    """Log once that a client of another project gets PIP-429's entries.

    The draft is not accepted: upstream may give the protocol version another meaning.
    """
    broker = session.broker
    if broker.noted_last_entries or not session.capabilities.takes_last_entries:
        return
    if session.client_version.startswith(OUR_CLIENTS):
        return
    broker.noted_last_entries = True
    log.info(
        "a client announced the protocol version in which GET_LAST_MESSAGE_ID answers with the entry in a trailing "
        "buffer (PIP-429's draft); if the client means something else by that version, lower the version as below",
        peer=session,
        protocol=session.capabilities.version,
        for_all="--max-protocol-version 21",
        for_this_client=f"pulsarium mask add --client-version '{session.client_version}' --max-protocol-version 21",
    )


@handles(pb.BaseCommand.PING, before_connect=True)
def ping(session: Session, cmd: pb.CommandPing, trailing: bytes) -> None:
    """Answer with PONG."""
    session.pong()


@handles(pb.BaseCommand.PONG, before_connect=True)
def pong(session: Session, cmd: pb.CommandPong, trailing: bytes) -> None:
    """Ignore a PONG: its bytes already counted as a sign of life."""


def _log_in(session: Session, cmd: pb.CommandConnect) -> None:
    """Authenticate the client, if authentication is on. The log has the reason of a failure, the client does not."""
    cluster = session.broker.cluster
    if cluster.authentication is None:
        return
    try:
        session.login = Login(cluster.authentication, cluster.authorization, cmd, session.certificate)
    except AuthenticationError as error:
        raise _failed(session, error) from None
    except RolesRefused as error:
        session.error(NO_REQUEST, pb.AuthorizationError, str(error))
        raise CloseConnection(str(error)) from None


def _failed(session: Session, why: AuthenticationError | str) -> CloseConnection:
    session.error(NO_REQUEST, pb.AuthenticationError, "Failed to authenticate")
    return CloseConnection(f"not authenticated: {why}")


@handles(pb.BaseCommand.AUTH_RESPONSE, before_connect=True)
def auth_response(session: Session, cmd: pb.CommandAuthResponse, trailing: bytes) -> None:
    """Renew the credentials, after AUTH_CHALLENGE or without. Good credentials get no answer."""
    response = cmd.response
    if not (response.HasField("auth_method_name") and response.HasField("auth_data")):
        raise CloseConnection("AUTH_RESPONSE without credentials")
    if session.login is None:
        raise _failed(session, "AUTH_RESPONSE to no AUTH_CHALLENGE")
    try:
        session.login.renew(response.auth_data)
    except AuthenticationError as error:
        raise _failed(session, error) from None
    except Stale as error:
        raise CloseConnection(str(error)) from None
    log.info("credentials renewed", peer=session, role=session.principal)
