"""The URLs that a broker gives to clients."""

from __future__ import annotations

from typing import Any

import pytest

from pulsarium.broker.cluster import Broker
from pulsarium.broker.config import Config
from pulsarium.broker.config.listeners import Listener
from pulsarium.broker.model.client import AssignedBroker
from pulsarium.broker.web.http.request import HttpClient
from tests.broker.web.admin.rest import Rest
from tests.broker.wire import TOPIC, Bed, Type, serving

LOOKUP = "/lookup/v2/topic/persistent/public/default/t"
WHOLE = Listener("pulsar://localhost:1", "pulsar+ssl://localhost:3", "http://localhost:2", "https://localhost:4")


def with_tls(bed: Bed) -> Broker:
    """Return the broker with four ports, two of them for TLS, as if they were bound."""
    bed.broker.listening(1, 2, 3, 4)
    return bed.broker


async def test_the_ports_that_are_bound(bed: Bed) -> None:
    broker = with_tls(bed)
    assert broker.listener() == WHOLE
    assert broker.assigned == AssignedBroker(WHOLE.pulsar, WHOLE.pulsar_ssl)
    assert {"localhost:1", "localhost:3", "127.0.0.1:3"} <= broker.addresses
    broker.listening(1, 2)
    assert broker.listener() == WHOLE._replace(pulsar_ssl="", https="")
    assert "localhost:3" not in broker.addresses


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("", Listener("pulsar://in:1", "pulsar+ssl://in:2")),
        ("inside", Listener("pulsar://in:1", "pulsar+ssl://in:2")),
        ("secure", Listener(pulsar_ssl="pulsar+ssl://out:2")),
        ("web", None),
        ("unknown", None),
    ],
)
async def test_a_lookup_answers_the_advertised_listener_of_its_name(name: str, expected: Listener | None) -> None:
    listeners = "inside:pulsar://in:1,inside:pulsar+ssl://in:2,secure:pulsar+ssl://out:2,web:http://out:3"
    async with serving(Config(advertisedListeners=listeners)) as bed:
        assert bed.broker.listener(name) == expected
        assert {"in:1", "in:2", "out:2"} <= bed.broker.addresses
        if expected is not None:
            wire = await bed.connect()
            found: Any = await wire.ask(Type.LOOKUP, topic=TOPIC, advertised_listener_name=name)
            assert (found.brokerServiceUrl, found.brokerServiceUrlTls) == (expected.pulsar, expected.pulsar_ssl)


async def test_lookups_name_what_speaks_tls(bed: Bed) -> None:
    rest = Rest(with_tls(bed))
    wire = await bed.connect()
    found: Any = await wire.ask(Type.LOOKUP, topic=TOPIC)
    assert (found.brokerServiceUrl, found.brokerServiceUrlTls) == (WHOLE.pulsar, WHOLE.pulsar_ssl)
    assert await rest.get(LOOKUP, host="me:80") == {
        "brokerUrl": "pulsar://me:1",
        "httpUrl": "http://me:80",
        "nativeUrl": "pulsar://me:1",
        "brokerUrlTls": "pulsar+ssl://me:3",
        "httpUrlTls": "https://me:4",
        "brokerUrlSsl": "",
    }
    rest.caller = HttpClient("?", 0, secure=True)
    assert (await rest.get(LOOKUP, host="me:443"))["httpUrlTls"] == "https://me:443"
    clusters = await rest.get("/admin/v2/clusters/standalone")
    assert (clusters["serviceUrlTls"], clusters["brokerServiceUrlTls"]) == (WHOLE.https, WHOLE.pulsar_ssl)


@pytest.mark.serving(brokers=2)
async def test_a_redirect_stays_with_https(bed: Bed) -> None:
    for index, broker in enumerate(bed.brokers):
        broker.listening(6650 + index, 8080 + index, 6660 + index, 8443 + index)
    rests = [Rest(broker) for broker in bed.brokers]
    for rest in rests:
        rest.caller = HttpClient("?", 0, secure=True)
    answers = [await rest.call("PUT", "/admin/v2/persistent/public/default/t", host="me:9") for rest in rests]
    assert sorted(answer.status for answer in answers) == [204, 307]
    (moved,) = (answer.headers["location"] for answer in answers if answer.status == 307)
    assert moved.startswith(("https://me:8443/", "https://me:8444/"))
