"""Refuse the commands of scalable topics (PIP-460) and of their coordinators (PIP-473).

The broker announces neither. A client that asks anyway gets the refusal of a broker with scalableTopicsEnabled=false.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pulsarium.broker.commands.answers import refusal
from pulsarium.broker.commands.registry import Command, handles
from pulsarium.proto.commands import COMMANDS
from pulsarium.proto.generated import PulsarApi_pb2 as pb

if TYPE_CHECKING:
    from pulsarium.broker.session.session import Session

WHY = "scalable topics are not built; answered as with scalableTopicsEnabled=false"
DISABLED = "Scalable topics are disabled"
_T = pb.BaseCommand
_SPECS: Final = {pb.BaseCommand.DESCRIPTOR.fields_by_name[each.field].message_type: each for each in COMMANDS.values()}


@handles(_T.SCALABLE_TOPIC_LOOKUP, absent=WHY)
@handles(_T.SCALABLE_TOPIC_SUBSCRIBE, absent=WHY)
@handles(_T.SCALABLE_TOPIC_UNSUBSCRIBE, absent=WHY)
@handles(_T.WATCH_SCALABLE_TOPICS, absent=WHY)
def refuse(session: Session, cmd: Any, trailing: bytes) -> None:
    answer = refusal(Command(_SPECS[cmd.DESCRIPTOR], cmd), pb.NotAllowedError, DISABLED)
    assert answer is not None
    session.command(answer)


@handles(_T.SCALABLE_TOPIC_CLOSE, absent=WHY)
@handles(_T.WATCH_SCALABLE_TOPICS_CLOSE, absent=WHY)
def close(session: Session, cmd: Any, trailing: bytes) -> None:
    """Ignore a close: nothing was opened, and a close has no answer."""
