"""/metrics."""

from __future__ import annotations

import re

import pytest

from pulsarium.broker.config import PROFILES, Config, profile_of
from pulsarium.broker.web.admin.cluster.metrics import TextFormat, written
from tests.broker.auth.secured import bearer, by_token
from tests.broker.web.admin.rest import ADMIN, TOPICS, Rest, rest_of
from tests.broker.wire import TOPIC, Earliest, KeyShared, Shared, Type, Wire, message_id, plain, serving

LINE = re.compile(r'([a-z_]+)\{((?:[a-z_]+="(?:[^"\\]|\\.)*",?)*)\} (-?[0-9.e+-]+)')
OF_TOPIC = f'cluster="standalone",namespace="public/default",topic="{TOPIC}"'


async def read(rest: Rest) -> dict[str, float]:
    """Return all samples by their names with labels. Fail on a line that is not in the format."""
    answer = await rest.call("GET", "/metrics/")
    assert (answer.status, answer.headers["content-type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
    found: dict[str, float] = {}
    metric = ""
    for line in answer.body.decode().splitlines():
        if line.startswith("# TYPE "):
            _, _, metric, kind = line.split(" ")
            assert kind == "gauge"
            continue
        match = LINE.fullmatch(line)
        assert match, line
        assert match[1] == metric
        found[f"{match[1]}{{{match[2]}}}"] = float(match[3])
    return found


async def test_metrics_of_a_broker_without_topics(rest: Rest) -> None:
    values = await read(rest)
    assert values['pulsar_broker_topics_count{cluster="standalone"}'] == 0
    assert not any("topic=" in name for name in values)


async def test_metrics_of_a_topic_at_work(rest: Rest, wire: Wire) -> None:
    entry = plain(b"x")
    await wire.producer()
    await wire.subscribe(type=Shared, initialPosition=Earliest)
    await wire.publish(*[entry] * 5)
    await wire.flow(2)
    await wire.messages(2)
    values = await read(rest)
    of_topic = {
        "pulsar_producers_count": 1,
        "pulsar_subscriptions_count": 1,
        "pulsar_consumers_count": 1,
        "pulsar_in_messages_total": 5,
        "pulsar_in_bytes_total": 5 * len(entry),
        "pulsar_storage_size": 5 * len(entry),
        "pulsar_msg_backlog": 5,
        "pulsar_rate_in": 0,
        "pulsar_storage_backlog_quota_limit": -1,
    }
    assert {name: values[f"{name}{{{OF_TOPIC}}}"] for name in of_topic} == of_topic
    of_subscription = {
        "pulsar_subscription_back_log": 5,
        "pulsar_subscription_unacked_messages": 2,
        "pulsar_subscription_blocked_on_unacked_messages": 0,
        "pulsar_subscription_consumers_count": 1,
        "pulsar_out_messages_total": 2,
    }
    labels = f'{OF_TOPIC},subscription="sub"'
    assert {name: values[f"{name}{{{labels}}}"] for name in of_subscription} == of_subscription
    assert values['pulsar_topics_count{cluster="standalone",namespace="public/default"}'] == 1
    for what in ("topics", "producers", "subscriptions", "consumers"):
        assert values[f'pulsar_broker_{what}_count{{cluster="standalone"}}'] == 1
    assert values['pulsar_broker_msg_backlog{cluster="standalone"}'] == 5
    connections = 'pulsar_active_connections{cluster="standalone",broker="localhost",metric="broker_connection"}'
    assert values[connections] == 1


async def test_tokens_are_counted_by_the_reason_of_their_refusal() -> None:
    async with serving(by_token()) as bed:
        rest = rest_of(bed)
        await rest.call("GET", f"{ADMIN}/clusters", **bearer("admin"))
        await rest.call("GET", f"{ADMIN}/clusters", **bearer("admin", exp=1))
        await rest.call("GET", f"{ADMIN}/clusters", authorization="Basic x")
        values = await read(rest)
    labels = 'cluster="standalone",provider_name="AuthenticationProviderToken",auth_method="token"'
    assert {name: value for name, value in values.items() if "authentication" in name} == {
        f"pulsar_authentication_success_total{{{labels}}}": 1,
        f'pulsar_authentication_failures_total{{{labels},reason="INVALID_TOKEN"}}': 1,
        f'pulsar_authentication_failures_total{{{labels},reason="INVALID_AUTH_DATA"}}': 1,
    }


async def test_only_a_known_age_of_a_backlog_is_a_sample() -> None:
    """Pulsar 5.0.1 answers so."""
    config = Config(exposeSubscriptionBacklogAgeInPrometheus=True, preciseTimeBasedBacklogQuotaCheck=True)
    async with serving(config, profile=PROFILES["pulsar-5.0"]) as bed:
        wire = await bed.connect()
        await wire.producer()
        await wire.subscribe(name="behind", consumer_id=1)
        await wire.publish(plain(b"x", publish_time=bed.broker.clock.now_ms() - 7_000))
        await wire.subscribe(name="caught-up", consumer_id=2)
        values = await read(rest_of(bed))
    ages = {name: value for name, value in values.items() if "subscription_storage_backlog_age" in name}
    assert ages == {f'pulsar_subscription_storage_backlog_age_seconds{{{OF_TOPIC},subscription="behind"}}': 7}


@pytest.mark.parametrize(("pip", "values"), [([], []), ([493], [1, 2])])
async def test_negatively_acknowledged_messages_are_samples_with_pip_493(pip: list[int], values: list[float]) -> None:
    async with serving(profile=profile_of("pip", pip=pip)) as bed:
        wire = await bed.connect()
        await wire.producer()
        await wire.subscribe(type=KeyShared)
        await wire.flow()
        sent = await wire.publish(*[plain(b"x", partition_key="k")] * 2)
        await wire.messages(2)
        if pip:
            await wire.send(Type.NEGATIVE_ACK, consumer_id=0, negative_acked=[*map(message_id, sent)])
            await wire.alive()
        found = await read(rest_of(bed))
    labels = f'{{{OF_TOPIC},subscription="sub"}}'
    names = [f"pulsar_subscription_retrying_{what}_count{labels}" for what in ("hashes", "positions")]
    assert [found[name] for name in names if name in found] == values


async def test_names_cannot_break_the_format(rest: Rest) -> None:
    await rest.done("PUT", f"{TOPICS}/t/subscription/a%22b%5Cc%0Ad")
    assert any(name.endswith('subscription="a\\"b\\\\c\\nd"}') for name in await read(rest))


def test_samples_of_a_metric_stand_together() -> None:
    text = TextFormat()
    text.add_all(iter([("a", written({"x": "1"}), 1), ("b", written({"x": "1", "y": ""}), 2.5), ("a", "", 2**40)]))
    expected = '# TYPE a gauge\na{x="1"} 1\na{} 1099511627776\n# TYPE b gauge\nb{x="1",y=""} 2.5\n'
    assert b"".join(text.pieces()) == expected.encode()
