"""Scalable topics (PIP-460), and where their coordinators are (PIP-473): no client is told that there are any.

One that asks all the same is refused, as by a broker with scalableTopicsEnabled=false.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pulsarium.broker.commands.registry import handles
from pulsarium.proto.generated import PulsarApi_pb2 as pb

if TYPE_CHECKING:
    from pulsarium.broker.session.session import Session

WHY = "scalable topics are not built; answered as with scalableTopicsEnabled=false"
DISABLED = "Scalable topics are disabled"
_T = pb.BaseCommand


@handles(_T.SCALABLE_TOPIC_LOOKUP, absent=WHY)
def lookup(session: Session, cmd: pb.CommandScalableTopicLookup, trailing: bytes) -> None:
    update = pb.CommandScalableTopicUpdate(session_id=cmd.session_id, error=pb.NotAllowedError, message=DISABLED)
    session.command(_T(type=_T.SCALABLE_TOPIC_UPDATE, scalableTopicUpdate=update))


@handles(_T.SCALABLE_TOPIC_SUBSCRIBE, absent=WHY)
def subscribe(session: Session, cmd: pb.CommandScalableTopicSubscribe, trailing: bytes) -> None:
    response = pb.CommandScalableTopicSubscribeResponse(
        request_id=cmd.request_id, error=pb.NotAllowedError, message=DISABLED
    )
    answer = _T(type=_T.SCALABLE_TOPIC_SUBSCRIBE_RESPONSE, scalableTopicSubscribeResponse=response)
    session.command(answer)


@handles(_T.WATCH_SCALABLE_TOPICS, absent=WHY)
def watch(session: Session, cmd: pb.CommandWatchScalableTopics, trailing: bytes) -> None:
    update = pb.CommandWatchScalableTopicsUpdate(watch_id=cmd.watch_id, error=pb.NotAllowedError, message=DISABLED)
    session.command(_T(type=_T.WATCH_SCALABLE_TOPICS_UPDATE, watchScalableTopicsUpdate=update))


@handles(_T.WATCH_TC_ASSIGNMENTS, absent=WHY)
def watch_coordinators(session: Session, cmd: pb.CommandWatchTcAssignments, trailing: bytes) -> None:
    update = pb.CommandWatchTcAssignmentsUpdate(watch_id=cmd.watch_id, error=pb.NotAllowedError, message=DISABLED)
    session.command(_T(type=_T.WATCH_TC_ASSIGNMENTS_UPDATE, watchTcAssignmentsUpdate=update))


@handles(_T.SCALABLE_TOPIC_CLOSE, absent=WHY)
@handles(_T.WATCH_SCALABLE_TOPICS_CLOSE, absent=WHY)
@handles(_T.WATCH_TC_ASSIGNMENTS_CLOSE, absent=WHY)
def close(session: Session, cmd: Any, trailing: bytes) -> None:
    """Nothing was opened; a close has no answer."""
