"""Requests that no sane client sends: every route, with odd names, queries, bodies and credentials."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode

from hypothesis import strategies as st

from pulsarium.broker.web.http.pulsar_routes import pulsar_routes
from pulsarium.broker.web.routes import all_routes
from tests.broker.auth.secured import SECRET, token

METHODS = ("GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "TRACE")
# Routes of the lab are left out: they would reset the broker, lose requests and change the clock.
BUILT = [route for route, _ in all_routes() if not route.path.startswith("/lab")]
PATHS = sorted({route.path for route in BUILT} | {route.path for route in pulsar_routes()})
ROUTES = sorted({(route.method, route.path) for route in BUILT})

ODD = ("", ".", "..", "%", "%2F", "%00", "a%2Fb", "é", "€", "a b", "+", "%20", "*", "-1", "0", "x" * 300, "__x", "null")
NUMBERS = (*(str(each) for each in (-1, 0, 1, 2, 2**31 - 1, 2**31, 2**63 - 1, 2**63)), "1.5", "1e9", "x")
# The name of a path parameter -> its usual values, most of which exist (see PREPARED).
NAMES: Mapping[str, tuple[str, ...]] = {
    "tenant": (*["ta"] * 6, "nope"),
    "property": ("ta",),
    "namespace": (*["ns"] * 6, "nope"),
    "topic": (*["t"] * 4, *["parted"] * 2, "parted-partition-0", "parted-partition-9", "t-partition-x", "nope"),
    "subscription": ("s", "s", "s", "nope"),
    "cluster": ("standalone", "standalone", "other"),
    "bundle": ("0x00000000_0x40000000", "0x0_0x1", "LARGEST"),
    "role": ("user", "me"),
    "domain": ("persistent", "non-persistent"),
}
NAMES_OF_QUERIES = """
authoritative force applied isGlobal index timestamp bundle mode listenerName brokerId token tenant property
messagePosition initialPosition backlogQuotaType updateLocalTopicOnly createLocalTopicOnly getPreciseBacklog
subscriptionBacklogSize metadata perPartition messageTTL subscriptionExpirationTime destinationBroker unload
splitAlgorithmName splitBoundaries force deleteSchema includeSystemTopic checkAllowAutoCreation replicated
number topicVersion namespaceBundle isClusterUnavailable clusterMigrated ledgerId
"""
QUERIES = NAMES_OF_QUERIES.split()
VALUES = (*ODD, *NUMBERS, "true", "false", "earliest", "latest", "message_age", "PERSISTENT", "0x00000000_0x40000000")

LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from([0, 1, -1, 2, 100, 2**31 - 1, 2**31, -(2**31) - 1, 2**63, 2**70, 1.5, -0.0, 1e300]),
    st.sampled_from([*VALUES, "consume", "produce", "AAEC", "CAEQAg==", "messageId", "byteArray"]),
)
NAMES_OF_FIELDS = """
adminRoles allowedClusters clusters bundles boundaries numBundles policies replication_clusters
retentionTimeInMinutes retentionSizeInMB limit limitSize limitTime policy type messageIds ledgerId entryId
batchIndex partitionIndex topic role actions properties partitions serviceUrl brokerServiceUrl msgRateIn
namespaces primary secondary auto_failover_policy parameters policy_type schema data tickTime active
maxDeliveryDelayInMillis deleteWhileInactive subscribeThrottlingRatePerConsumer ratePeriodInSecond
bookkeeperEnsemble bookkeeperWriteQuorum bookkeeperAckQuorum managedLedgerMaxMarkDeleteRate
dispatchThrottlingRateInMsg publishThrottlingRateInMsg messageId brokers rack group allowAutoTopicCreation
topicType defaultNumPartitions allowAutoSubscriptionCreation isExcluded peerClusterNames retention_policies
autoTopicCreationOverride clusterSubscribeRate backlog_quota_map destination_storage inactiveTopicDeleteMode
"""
FIELDS = st.sampled_from(NAMES_OF_FIELDS.split())
JSON = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(FIELDS, inner, max_size=4), max_leaves=8
)
BODIES = st.one_of(
    st.just(b""),
    JSON.map(lambda value: json.dumps(value).encode()),
    st.sampled_from([b"{", b"[", b'"', b"nul", b"\xff\xfe", b"[" * 2000, b"{}" * 2, b"\x00", b"NaN", b"-", b"1" * 400]),
)
ODD_TYPES = ["text/plain", "application/x-www-form-urlencoded", "application/vnd.partitioned-topic-metadata+json"]
CONTENT_TYPES = st.sampled_from(["application/json"] * 30 + ODD_TYPES + ["", "x/y; z"])
ACCEPTS = st.sampled_from(["application/json"] * 4 + ["*/*", "text/html", "", "junk"])
AUTHORIZATIONS = st.sampled_from(
    [f"Bearer {token('admin')}"] * 40
    + [f"Bearer {token(role)}" for role in ("tadmin", "user", "nobody", "proxy", None)]
    + [f"Bearer {token('admin', key=SECRET + b'!')}", f"Bearer {token('admin', exp=1)}"]
    + ["", "Bearer", "Bearer junk", "Basic eDp5", "Basic é", "\x01"]
)
PRINCIPALS = st.sampled_from([""] * 20 + ["admin", "user", "proxy"])


@dataclass(frozen=True)
class Bad:
    """A request, and the route that it was made from."""

    method: str
    route: str
    url: str
    body: bytes
    headers: Mapping[str, str] = field(repr=False)

    def __str__(self) -> str:
        return f"{self.method} {self.url} {self.body[:80]!r}"


@st.composite
def bad_requests(draw: st.DrawFn) -> Bad:
    """Draw a request to a route that exists, or to any path with any method."""
    if draw(st.integers(0, 9)):
        method, path = draw(st.sampled_from(ROUTES))
    else:
        method, path = draw(st.sampled_from(METHODS)), draw(st.sampled_from(PATHS))
    url = "/".join(_part(draw, part) for part in path.split("/"))
    if not draw(st.integers(0, 30)):
        url += draw(st.sampled_from(["/", "//", "/x", "/%2e%2e/x", ";a=b", "%"]))
    query = draw(st.dictionaries(st.sampled_from(QUERIES), st.sampled_from(VALUES), max_size=2))
    if query:
        url += f"?{urlencode(query)}"
    headers = {
        "content-type": draw(CONTENT_TYPES),
        "accept": draw(ACCEPTS),
        "authorization": draw(AUTHORIZATIONS),
        "x-original-principal": draw(PRINCIPALS),
    }
    return Bad(method, path, url, draw(BODIES), {name: value for name, value in headers.items() if value})


def _part(draw: st.DrawFn, part: str) -> str:
    """Draw a part of a path. A parameter mostly gets a value that exists."""
    if not part.startswith("{"):
        return part
    name = part.strip("{}")
    known = next((found for key, found in NAMES.items() if name.lower().startswith(key)), NUMBERS)
    odd = not draw(st.integers(0, 11))
    chosen: Any = draw(st.sampled_from([*ODD, *NUMBERS] if odd else known))
    return quote(chosen, safe="%+.*") or "%20"


PREPARED: tuple[tuple[str, str, Any], ...] = (
    ("PUT", "/admin/v2/tenants/ta", {"adminRoles": ["tadmin"], "allowedClusters": ["standalone"]}),
    ("PUT", "/admin/v2/namespaces/ta/ns", {}),
    ("PUT", "/admin/v2/persistent/ta/ns/t", None),
    ("PUT", "/admin/v2/persistent/ta/ns/parted/partitions", 2),
    ("PUT", "/admin/v2/persistent/ta/ns/t/subscription/s", "earliest"),
    ("POST", "/admin/v2/namespaces/ta/ns/permissions/user", ["consume"]),
)
"""Calls of the superuser admin that make tenant, namespace, topics, a subscription and a grant."""


NOT_ENABLED = (
    b"Package Management Service is not enabled",
    b"not configured with transactionCoordinatorEnabled=true",
    b"Pending ack have not init success!",  # Pulsar's text for a subscription without transactions
)


def is_meant(request: Bad, status: int, body: bytes) -> bool:
    """Return whether an answer is no fault of the broker: below 500, or a 503 that names a disabled feature."""
    if request.method == "HEAD":
        return status < 500 or status == 503  # an answer to HEAD has no body that names the feature
    return status < 500 or (status == 503 and any(words in body for words in NOT_ENABLED))
