"""What calls about transactions have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pulsarium.broker.admin.topic.backlog import number_of
from pulsarium.broker.auth.needs import topic_operation
from pulsarium.broker.http.call import Call
from pulsarium.broker.http.errors import AdminError
from pulsarium.broker.model.errors import BrokerServiceError
from pulsarium.broker.model.ledger.position import unsigned
from pulsarium.broker.model.topic.persistent import PersistentTopic
from pulsarium.proto.message_id import TxnId

READING = topic_operation("GET_STATS", unasked=True)  # what every other statistic of a topic needs


def check_enabled(call: Call) -> None:
    """503 where the broker serves no transactions."""
    if not call.broker.config.transactionCoordinatorEnabled:
        raise AdminError(503, "This Broker is not configured with transactionCoordinatorEnabled=true.")


def existing_topic(call: Call) -> PersistentTopic:
    """The topic of the path, loaded; 404 also for one with partitions as a whole."""
    name = call.topic
    try:
        return call.broker.topics.find_persistent(name)
    except BrokerServiceError:
        raise AdminError(404, f"Topic not found {name}") from None


def txn_of(call: Call) -> TxnId:
    """The transaction of the path."""
    most, least = (unsigned(number_of(call, name, bits=64)) for name in ("mostSigBits", "leastSigBits"))
    return TxnId(most, least)


def low_watermarks_json(low_watermarks: Mapping[int, int], *, asked: bool) -> dict[str, Any]:
    """As stats show them, by coordinator; nothing where nobody asked."""
    return {"lowWaterMarks": {str(tc): least for tc, least in low_watermarks.items()}} if asked else {}
