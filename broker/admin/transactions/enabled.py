"""What all calls about transactions ask first."""

from __future__ import annotations

from pulsarium.broker.admin.http.call import Call
from pulsarium.broker.admin.http.errors import AdminError
from pulsarium.broker.model.errors import BrokerServiceError
from pulsarium.broker.model.topic.persistent import PersistentTopic


def check_enabled(call: Call) -> None:
    """503 where the broker serves no transactions."""
    if not call.broker.config.transactionCoordinatorEnabled:
        raise AdminError(503, "This Broker is not configured with transactionCoordinatorEnabled=true.")


def existing_topic(call: Call) -> PersistentTopic:
    """The topic of the path, loaded; 404 also for one with partitions as a whole."""
    name = call.topic
    try:
        topic = call.broker.topics.find(name)
    except BrokerServiceError:
        raise AdminError(404, f"Topic not found {name}") from None
    assert isinstance(topic, PersistentTopic)
    return topic
