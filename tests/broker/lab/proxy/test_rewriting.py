"""URLs of brokers in commands lead to the proxy, and nothing else changes."""

from __future__ import annotations

import pytest

from pulsarium.broker.lab.proxy.rewriting import WITH_URLS, BrokerUrls, lead
from pulsarium.proto.commands import COMMANDS
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.wire import Type, command

PLAIN, SECURE = "pulsar://b1:6650", "pulsar+ssl://b1:6651"
OURS = BrokerUrls("pulsar://proxy:1", "")


def through(urls: BrokerUrls) -> BrokerUrls:
    return OURS if urls.plain else urls


def test_both_urls_of_a_lookup_change_and_no_other_field() -> None:
    answer = command(Type.LOOKUP_RESPONSE, request_id=7, response=1, brokerServiceUrl=PLAIN, brokerServiceUrlTls=SECURE)
    assert lead(answer, through)
    told = answer.lookupTopicResponse
    assert BrokerUrls(told.brokerServiceUrl, told.brokerServiceUrlTls) == OURS  # a client may not go around the proxy
    assert (told.request_id, told.response) == (7, 1)


def test_clients_that_stay_on_the_service_url_are_told_the_true_one() -> None:
    """Clients put the broker's true URL into CONNECT.proxy_to_broker_url."""
    fields = {"request_id": 7, "response": 1, "brokerServiceUrl": PLAIN, "proxy_through_service_url": True}
    assert not lead(command(Type.LOOKUP_RESPONSE, **fields), through)


def test_urls_in_nested_messages_change() -> None:
    scalable = pb.BaseCommand(type=Type.SCALABLE_TOPIC_UPDATE)
    dag = getattr(scalable, COMMANDS[Type.SCALABLE_TOPIC_UPDATE].field).dag
    dag.controller_broker_url = "pulsar://b3:6650"
    dag.segment_brokers.add(segment_id=1, broker_url="pulsar://b4:6650")
    assert lead(scalable, through)
    assert (dag.controller_broker_url, dag.segment_brokers[0].broker_url) == (OURS.plain, OURS.plain)
    assert not dag.HasField("controller_broker_url_tls")


@pytest.mark.parametrize(
    "other",
    [
        command(Type.LOOKUP_RESPONSE, request_id=1, response=2, error=pb.ServiceNotReady),
        command(Type.CLOSE_CONSUMER, consumer_id=1, request_id=2),
        command(Type.ERROR, request_id=1, error=pb.ServiceNotReady, message="go to pulsar://other:6650"),
    ],
    ids=lambda each: COMMANDS[each.type].name,
)
def test_a_command_without_a_url_stays(other: pb.BaseCommand) -> None:
    assert not lead(other, through)


def test_the_types_that_have_urls() -> None:
    expected = {Type.LOOKUP_RESPONSE, Type.CLOSE_PRODUCER, Type.CLOSE_CONSUMER, Type.TOPIC_MIGRATED}
    assert expected < WITH_URLS
    assert not WITH_URLS & {Type.MESSAGE, Type.SEND_RECEIPT}
