"""Handle WATCH_TC_ASSIGNMENTS: tell clients which brokers lead the coordinators over scalable topics (PIP-473)."""

from __future__ import annotations

from pulsarium.broker.cluster import Broker
from pulsarium.broker.commands.registry import handles
from pulsarium.broker.model.transaction.scalable import ScalableCoordinators
from pulsarium.broker.session.session import Session
from pulsarium.proto.generated import PulsarApi_pb2 as pb

DISABLED = "Scalable-topics transaction coordinator is disabled on this broker"


class CoordinatorWatch:
    """A watch of a client: it gets all leaders at once, and again when a broker starts or stops."""

    def __init__(self, session: Session, watch_id: int, coordinators: ScalableCoordinators[Broker]) -> None:
        self._session = session
        self._id = watch_id
        self._coordinators = coordinators
        coordinators.watchers[self.tell] = None

    def tell(self) -> None:
        """Send all leaders, by the URLs of their listeners."""
        update = pb.CommandWatchTcAssignmentsUpdate(watch_id=self._id)
        update.snapshot.parallelism = self._session.broker.config.transactionCoordinatorScalableTopicsParallelism
        for number, leader in self._coordinators.leaders.items():
            urls = leader.listener()
            assignment = update.snapshot.assignments.add(tc_id=number)
            if urls is not None and urls.pulsar:
                assignment.broker_service_url = urls.pulsar
            if urls is not None and urls.pulsar_ssl:
                assignment.broker_service_url_tls = urls.pulsar_ssl
        _send(self._session, update)

    def close(self) -> None:
        """Tell the client nothing more."""
        self._coordinators.watchers.pop(self.tell, None)


@handles(pb.BaseCommand.WATCH_TC_ASSIGNMENTS)
def watch_tc_assignments(session: Session, cmd: pb.CommandWatchTcAssignments, trailing: bytes) -> None:
    """Open a watch, which replaces one of its id."""
    coordinators, watch_id = session.broker.cluster.scalable_coordinators, cmd.watch_id
    if coordinators is None:
        update = pb.CommandWatchTcAssignmentsUpdate(watch_id=watch_id, error=pb.NotAllowedError, message=DISABLED)
        _send(session, update)
        return
    _close(session, watch_id)
    watch = session.coordinator_watches[watch_id] = CoordinatorWatch(session, watch_id, coordinators)
    watch.tell()


@handles(pb.BaseCommand.WATCH_TC_ASSIGNMENTS_CLOSE)
def watch_tc_assignments_close(session: Session, cmd: pb.CommandWatchTcAssignmentsClose, trailing: bytes) -> None:
    """Close a watch. An unknown watch counts as closed, and there is no answer."""
    _close(session, cmd.watch_id)


def _close(session: Session, watch_id: int) -> None:
    watch = session.coordinator_watches.pop(watch_id, None)
    if watch is not None:
        watch.close()


def _send(session: Session, update: pb.CommandWatchTcAssignmentsUpdate) -> None:
    base = pb.BaseCommand(type=pb.BaseCommand.WATCH_TC_ASSIGNMENTS_UPDATE, watchTcAssignmentsUpdate=update)
    session.command(base)
