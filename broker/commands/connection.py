"""CONNECT, PING, PONG: the connection itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsarium.broker.commands.errors import CloseConnection
from pulsarium.broker.commands.registry import handles
from pulsarium.broker.logs import Log
from pulsarium.proto.generated import PulsarApi_pb2 as pb

if TYPE_CHECKING:
    from pulsarium.broker.session.session import Session

NO_REQUEST = 2**64 - 1  # the id of an ERROR that is about the connection (W-11)

log = Log("session")


@handles(pb.BaseCommand.CONNECT, before_connect=True)
def connect(session: Session, cmd: pb.CommandConnect, trailing: bytes) -> None:
    """Agree on a version (W-05 to W-12). Client flags are noted; the broker's own never depend on them."""
    if session.connected:
        raise CloseConnection("a second CONNECT")
    broker = session.broker
    session.connect(cmd)
    connected = pb.CommandConnected(
        server_version=broker.profile.server_version,
        protocol_version=min(broker.profile.max_protocol_version, cmd.protocol_version),
        max_message_size=broker.config.maxMessageSize,
        feature_flags=pb.FeatureFlags(
            supports_topic_watchers=broker.config.enableBrokerTopicListWatcher,
            supports_get_partitioned_metadata_without_auto_creation=True,
            supports_repl_dedup_by_lid_and_eid=True,
            supports_topic_watcher_reconcile=broker.config.enableBrokerTopicListWatcher,
        ),
    )
    log.info("connection opened", peer=session, client=session.client_version, protocol=cmd.protocol_version)
    session.command(pb.BaseCommand(type=pb.BaseCommand.CONNECTED, connected=connected))


@handles(pb.BaseCommand.PING, before_connect=True)
def ping(session: Session, cmd: pb.CommandPing, trailing: bytes) -> None:
    session.pong()


@handles(pb.BaseCommand.PONG, before_connect=True)
def pong(session: Session, cmd: pb.CommandPong, trailing: bytes) -> None:
    """A sign of life; that bytes came in was noted already."""


@handles(pb.BaseCommand.AUTH_RESPONSE, before_connect=True)
def auth_response(session: Session, cmd: pb.CommandAuthResponse, trailing: bytes) -> None:
    """Nobody was challenged: authentication is off."""
    if cmd.HasField("response"):
        session.error(NO_REQUEST, pb.AuthenticationError, "Failed to authenticate")
    raise CloseConnection("AUTH_RESPONSE to no AUTH_CHALLENGE")
