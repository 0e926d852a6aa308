"""/admin/v2/clusters."""

from __future__ import annotations

from typing import Any

import pytest

from tests.broker.admin.rest import ADMIN, Rest

CLUSTERS = f"{ADMIN}/clusters"
OTHER = {"serviceUrl": "http://example.com:8080", "brokerServiceUrl": "pulsar://example.com:6650"}


async def test_the_broker_s_own_cluster(rest: Rest) -> None:
    assert await rest.get(CLUSTERS) == ["standalone"]
    data = await rest.get(f"{CLUSTERS}/standalone")
    assert data["serviceUrl"] == "http://localhost:8080"
    assert data["brokerServiceUrl"] == "pulsar://localhost:6650"
    assert list(data)[2:] == [
        "brokerClientTlsEnabled",
        "tlsAllowInsecureConnection",
        "brokerClientTlsEnabledWithKeyStore",
        "brokerClientTlsTrustStoreType",
        "brokerClientTlsKeyStoreType",
        "brokerClientSslFactoryPlugin",
    ]


async def test_the_life_of_another_cluster(rest: Rest) -> None:
    url = f"{CLUSTERS}/c2"
    assert await rest.refused("GET", url) == (404, "Cluster does not exist")
    assert await rest.refused("POST", url, OTHER) == (404, "Cluster does not exist")
    made = await rest.call("PUT", url, {**OTHER, "unknown": 1})
    assert (made.status, made.body) == (200, b"")
    assert await rest.refused("PUT", url, OTHER) == (409, "Cluster already exists")
    off = dict.fromkeys(
        ("brokerClientTlsEnabled", "tlsAllowInsecureConnection", "brokerClientTlsEnabledWithKeyStore"), False
    )
    assert await rest.get(url) == OTHER | off
    assert await rest.get(CLUSTERS) == ["c2", "standalone"]
    assert (await rest.call("POST", url, {"serviceUrl": "http://example.org:8080"})).status == 200
    assert (await rest.get(url))["serviceUrl"] == "http://example.org:8080"
    await rest.done("DELETE", url)
    assert await rest.refused("DELETE", url) == (404, "Cluster does not exist")


async def test_peers(rest: Rest) -> None:
    for name in ("c2", "c3"):
        assert (await rest.call("PUT", f"{CLUSTERS}/{name}", {})).status == 200
    peers = f"{CLUSTERS}/c2/peers"
    await rest.done("POST", peers, ["c3"])
    assert await rest.get(peers) == ["c3"]
    assert await rest.refused("POST", peers, ["c2"]) == (412, "c2 itself can't be part of peer-list")
    assert await rest.refused("POST", peers, ["nope"]) == (412, "Peer cluster nope does not exist")
    assert await rest.refused("POST", f"{CLUSTERS}/nope/peers", []) == (404, "Cluster does not exist")


@pytest.mark.parametrize(
    ("name", "data", "status", "reason"),
    [
        ("bad%20name", OTHER, 412, "Cluster name is not valid"),
        ("c2", None, 400, "cluster data is required"),
        ("c2", {"serviceUrl": "pulsar://x"}, 400, "Illegal service url, example: http://pulsar.example.com:8080"),
        (
            "c2",
            {"brokerServiceUrl": "http://x"},
            400,
            "Illegal broker service url, example: pulsar://pulsar.example.com:6650",
        ),
        ("standalone", OTHER, 409, "Cluster already exists"),
    ],
)
async def test_what_is_refused(rest: Rest, name: str, data: Any, status: int, reason: str) -> None:
    assert await rest.refused("PUT", f"{CLUSTERS}/{name}", data) == (status, reason)


@pytest.mark.parametrize("data", [{"serviceUrl": 1}, {"serviceUrl": ["http://x"]}, {"peerClusterNames": "c2"}, "x"])
async def test_data_of_wrong_types(rest: Rest, data: Any) -> None:
    assert (await rest.call("PUT", f"{CLUSTERS}/c2", data)).status == 400


@pytest.mark.parametrize("peers", [{"a": 1}, [1], "c2", 5])
async def test_peers_of_wrong_types(rest: Rest, peers: Any) -> None:
    assert (await rest.call("POST", f"{CLUSTERS}/standalone/peers", peers)).status == 400


async def test_an_update_without_data(rest: Rest) -> None:
    assert (await rest.refused("POST", f"{CLUSTERS}/standalone", None))[0] == 400
