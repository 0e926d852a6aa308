"""Auto scale policies of topics and namespaces over REST (recording 039)."""

from __future__ import annotations

from typing import Any

import pytest

from pulsarium.broker.config.profile import PULSAR_4_2, PULSAR_5_0_M1
from pulsarium.proto.topic_name import TopicName
from tests.broker.web.admin.rest import ADMIN, NAMESPACES, Rest, rest_of
from tests.broker.wire import Bed

NAME = TopicName.parse("topic://public/default/t")
OF_TOPIC = f"{ADMIN}/scalable/public/default/t/autoScalePolicy"
OF_NAMESPACE = f"{NAMESPACES}/public/default/scalableTopicAutoScalePolicy"
INVALID = "Invalid auto split/merge configuration: "
JAVA = "org.apache.pulsar.common.policies.data.AutoScalePolicyOverride"
NO_CREATOR = (
    f"Cannot construct instance of `{JAVA}` (although at least one Creator exists): no String-argument "
    "constructor/factory method to deserialize from String value ('x')"
)
SOURCE = "at [Source: REDACTED (`StreamReadFeature.INCLUDE_SOURCE_IN_LOCATION` disabled); line: 1, column: "


@pytest.fixture
async def led(bed: Bed) -> Rest:
    """Return the admin API of a broker with a scalable topic."""
    bed.broker.cluster.scalable.create(NAME)
    return rest_of(bed)


@pytest.mark.parametrize("path", [OF_TOPIC, OF_NAMESPACE])
async def test_an_override_is_replaced_whole_and_shown_as_it_was_set(led: Rest, path: str) -> None:
    unset = await led.call("GET", path)
    assert (unset.status, unset.body) == (200, b"")
    override = {"enabled": True, "maxSegments": 8, "minSegments": 2, "splitCooldownSeconds": 1}
    assert (await led.call("POST", path, override)).status == 204
    assert (await led.call("GET", path)).json == override
    assert (await led.call("POST", path, {"nonsense": 1})).status == 204
    assert (await led.call("GET", path)).json == {}
    assert (await led.call("DELETE", path)).status == 204
    assert (await led.call("GET", path)).body == b""


@pytest.mark.parametrize("path", [OF_TOPIC, OF_NAMESPACE])
async def test_a_contradictory_override_is_refused(led: Rest, path: str) -> None:
    answer = await led.call("POST", path, {"minSegments": 0})
    assert (answer.status, answer.reason) == (412, f"{INVALID}minSegments must be >= 1")


async def test_a_topics_override_must_fit_that_of_its_namespace(led: Rest) -> None:
    await led.call("POST", OF_NAMESPACE, {"mergeMsgRateInThreshold": 5000.0})
    answer = await led.call("POST", OF_TOPIC, {"splitMsgRateInThreshold": 4000.0})
    text = f"{INVALID}splitMsgRateInThreshold must be > mergeMsgRateInThreshold (hysteresis)"
    assert (answer.status, answer.reason) == (412, text)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ([], f"Cannot deserialize value of type `{JAVA}` from Array value (token `JsonToken.START_ARRAY`)"),
        ("x", NO_CREATOR),
    ],
)
async def test_a_body_of_another_kind_is_refused_in_jacksons_words(led: Rest, value: Any, text: str) -> None:
    answer = await led.call("POST", OF_TOPIC, value)
    assert (answer.status, answer.body.decode()) == (400, f"{text}\n {SOURCE}1]")


@pytest.mark.parametrize(("method", "body"), [("GET", None), ("POST", {"enabled": True}), ("DELETE", None)])
async def test_an_absent_topic_has_no_override(rest: Rest, method: str, body: Any) -> None:
    answer = await (rest.call(method, OF_TOPIC) if body is None else rest.call(method, OF_TOPIC, body))
    assert (answer.status, answer.reason) == (404, "Scalable topic not found: topic://public/default/t")


async def test_seconds_and_bytes_are_long_and_rates_of_messages_are_not_whole(led: Rest) -> None:
    given = {"splitCooldownSeconds": 1 << 40, "splitBytesRateInThreshold": 1 << 40, "splitMsgRateInThreshold": 9999.5}
    await led.done("POST", OF_TOPIC, given)
    assert await led.get(OF_TOPIC) == given
    shown = (await led.get(OF_TOPIC.replace("autoScalePolicy", "stats")))["autoScale"]["policy"]
    assert given.items() <= shown.items()
    assert isinstance(shown["mergeBytesRateInThreshold"], int)


@pytest.mark.serving(profile=PULSAR_5_0_M1)
async def test_m1_ignores_the_values_of_entry_buckets(bed: Bed, rest: Rest) -> None:
    bed.broker.cluster.scalable.create(NAME)
    await rest.call("POST", OF_TOPIC, {"rebucketCooldownSeconds": 5})
    assert (await rest.call("GET", OF_TOPIC)).json == {}


async def test_broker_conf_is_changed_while_the_broker_runs(bed: Bed) -> None:
    rest, cluster = rest_of(bed), bed.broker.cluster
    controller = cluster.controllers.lead(cluster.scalable.create(NAME), bed.broker)
    answer = await rest.call("POST", f"{ADMIN}/brokers/configuration/scalableTopicMaxSegments/3")
    assert answer.status == 200
    assert controller.policy.max_segments == 3


@pytest.mark.serving(profile=PULSAR_4_2)
async def test_older_releases_have_no_such_settings(bed: Bed) -> None:
    answer = await rest_of(bed).call("POST", f"{ADMIN}/brokers/configuration/scalableTopicMaxSegments/3")
    assert (answer.status, answer.reason) == (412, "Can't update non-dynamic configuration")
