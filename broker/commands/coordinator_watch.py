"""Handle WATCH_TC_ASSIGNMENTS: tell clients which brokers lead the coordinators over scalable topics (PIP-473)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pulsarium.broker.commands.registry import handles
from pulsarium.proto.generated import PulsarApi_pb2 as pb

if TYPE_CHECKING:
    from pulsarium.broker.broker import Broker
    from pulsarium.broker.model.transaction.scalable import ScalableCoordinators
    from pulsarium.broker.session.session import Session

DISABLED = "Scalable-topics transaction coordinator is disabled on this broker"


@handles(pb.BaseCommand.WATCH_TC_ASSIGNMENTS)
def watch_tc_assignments(session: Session, cmd: pb.CommandWatchTcAssignments, trailing: bytes) -> None:
    """Tell the client all leaders now, and again when a broker starts or stops. The watch replaces one of its id."""
    coordinators, watch_id = session.broker.cluster.scalable_coordinators, cmd.watch_id
    if coordinators is None:
        update = pb.CommandWatchTcAssignmentsUpdate(watch_id=watch_id, error=pb.NotAllowedError, message=DISABLED)
        _send(session, update)
        return
    _end(session, watch_id)
    watch = session.coordinator_watches[watch_id] = partial(_tell, session, watch_id, coordinators)
    coordinators.watchers.add(watch)
    watch()


@handles(pb.BaseCommand.WATCH_TC_ASSIGNMENTS_CLOSE)
def watch_tc_assignments_close(session: Session, cmd: pb.CommandWatchTcAssignmentsClose, trailing: bytes) -> None:
    """End a watch. An unknown watch counts as ended, and there is no answer."""
    _end(session, cmd.watch_id)


def _end(session: Session, watch_id: int) -> None:
    watch, coordinators = session.coordinator_watches.pop(watch_id, None), session.broker.cluster.scalable_coordinators
    if watch is not None and coordinators is not None:
        coordinators.watchers.discard(watch)


def _tell(session: Session, watch_id: int, coordinators: ScalableCoordinators[Broker]) -> None:
    """Send all leaders, by the URLs of their listeners."""
    update = pb.CommandWatchTcAssignmentsUpdate(watch_id=watch_id)
    update.snapshot.parallelism = session.broker.config.transactionCoordinatorScalableTopicsParallelism
    for number, leader in coordinators.leaders.items():
        urls = leader.listener()
        update.snapshot.assignments.add(
            tc_id=number,
            broker_service_url=(urls.pulsar or None) if urls else None,
            broker_service_url_tls=(urls.pulsar_ssl or None) if urls else None,
        )
    _send(session, update)


def _send(session: Session, update: pb.CommandWatchTcAssignmentsUpdate) -> None:
    base = pb.BaseCommand(type=pb.BaseCommand.WATCH_TC_ASSIGNMENTS_UPDATE, watchTcAssignmentsUpdate=update)
    session.command(base)
