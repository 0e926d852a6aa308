"""Call every route of the admin API, each with resources of its own. `python -P -m tests.foreign.every_route` records.

Recording writes the answers of a real broker to routes.tsv: set PULSARIUM_TEST_SERVE=scripts/reference-pulsar.
"""

from __future__ import annotations

import json
import re
import tempfile
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pulsar

from pulsarium.broker.config.profile import PULSAR_4_2, PULSAR_5_0
from pulsarium.broker.web.http.registry import Route
from pulsarium.broker.web.routes import all_routes
from yardsticks.replay.rest.transactions import Transactions

from .broker_process import Address, BrokerProcess, is_pulsarium
from .java_admin import CONFIG
from .route_inputs import BODIES, GRANTED, QUERIES, VALUES

STATUSES = Path(__file__).with_name("routes.tsv")
SECONDS = 30.0
NO_ANSWER = 0
"""Recorded as the status when no answer came within `SECONDS`. A few calls never end on a real broker."""

PARTITIONED = re.compile(
    r".*\{topic\}/(partitions|partitioned-\w+|createMissedPartitions|terminate/partitions|partitions/\{partition\})"
)

CLUSTER = "/admin/v2/clusters/{cluster}"
TENANT = "/admin/v2/tenants/{tenant}"
NAMESPACE = "/admin/v2/namespaces/{tenant}/{namespace}"
OF_NAMESPACES = tuple(f"/admin/v2/{resource}/" for resource in ("namespaces", "persistent", "non-persistent"))


@dataclass(frozen=True)
class Call:
    """A request: a route whose parameters have values."""

    method: str
    url: str
    body: Any = None


class Http:
    """A plain client of the admin API."""

    def __init__(self, address: Address) -> None:
        self._url = address.admin_url

    def status(self, call: Call) -> int:
        data = None if call.body is None else json.dumps(call.body).encode()
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/plain, */*"}
        request = urllib.request.Request(self._url + call.url, data, headers, method=call.method)
        try:
            with urllib.request.urlopen(request, timeout=SECONDS) as answer:
                answer.read()
                return int(answer.status)
        except urllib.error.HTTPError as error:
            with error:
                error.read()
                return error.code
        except TimeoutError:
            return NO_ANSWER

    def get(self, url: str) -> Any:
        with urllib.request.urlopen(self._url + url, timeout=SECONDS) as answer:
            return json.load(answer)

    def done(self, method: str, url: str, body: Any = None) -> None:
        status = self.status(Call(method, url, body))
        assert status // 100 == 2, f"{method} {url}: {status}"


class Stage:
    """Resources that a route needs: a tenant, a namespace of one bundle, a topic with messages and a subscription."""

    def __init__(self, http: Http, client: pulsar.Client, service_url: str) -> None:
        self._http = http
        self._service_url = service_url
        self._client = client
        self._broker = http.get("/admin/v2/brokers")[0]
        http.done("PUT", f"/admin/v2/{GRANTED.replace('://', '/')}")

    def call_of(self, route: Route, number: int) -> Call:
        """Create the resources that a route needs, and return the call of the route."""
        own = {name: f"{name}-{number}" for name in ("tenant", "cluster", "resourcegroup")}
        names = {**VALUES, **own, "brokerId": self._broker, "broker": self._broker}
        self._of_a_cluster(route, names)
        self._of_a_tenant(route, names)
        self._of_a_transaction(route, names)
        self._others(route, names)
        kind = _kind(route)
        body = BODIES.get(f"{route.method} {kind}", BODIES.get(kind)) if route.method in ("POST", "PUT") else None
        query = QUERIES.get(f"{route.method} {kind}", QUERIES.get(kind, ""))
        return Call(route.method, _with_values(route.path, names) + _filled(query, names), _filled(body, names))

    def _of_a_cluster(self, route: Route, names: dict[str, Any]) -> None:
        if not route.path.startswith(CLUSTER) or "namespaceIsolationPolicies" in route.path:
            names["cluster"] = names["clusterName"]
        elif (route.method, route.path) != ("PUT", CLUSTER):
            self._http.done("PUT", _with_values(CLUSTER, names), BODIES[CLUSTER])

    def _of_a_tenant(self, route: Route, names: dict[str, Any]) -> None:
        if "{tenant}" not in route.path or (route.method, route.path) == ("PUT", TENANT):
            return
        self._http.done("PUT", _with_values(TENANT, names), BODIES[TENANT])
        if "{namespace}" not in route.path or (route.method, route.path) == ("PUT", NAMESPACE):
            return
        bundles = {"bundles": {"boundaries": ["0x00000000", "0xffffffff"], "numBundles": 1}}
        self._http.done("PUT", _with_values(NAMESPACE, names), bundles)
        if "{topic}" in route.path:
            self._of_a_topic(route, names)

    def _of_a_topic(self, route: Route, names: dict[str, Any]) -> None:
        domain = "non-persistent" if "/non-persistent/" in route.path else "persistent"
        topic = f"/admin/v2/{domain}/{names['tenant']}/ns/t"
        if route.method == "PUT" and route.path.endswith(("{topic}", "{topic}/partitions")):
            return
        if PARTITIONED.fullmatch(route.path):
            self._http.done("PUT", f"{topic}/partitions", 2)
            return
        self._http.done("PUT", topic)
        if domain == "persistent" and not route.path.startswith("/topics"):
            if not (route.method == "PUT" and route.path.endswith("/subscription/{subscription}")):
                self._http.done("PUT", f"{topic}/subscription/s", {"ledgerId": -1, "entryId": -1})
            producer = self._client.create_producer(f"persistent://{names['tenant']}/ns/t", batching_enabled=False)
            ids = [producer.send(b"message") for _ in range(3)]
            producer.close()
            names |= {"ledger": ids[1].ledger_id(), "entry": ids[1].entry_id()}

    def _of_a_transaction(self, route: Route, names: dict[str, Any]) -> None:
        """Open a transaction that publishes to the topic and acknowledges on its subscription."""
        if not route.path.startswith("/admin/v3/transactions/"):
            return
        own = names["tenant"]  # an open transaction stops the dispatch of its topic
        topic = f"persistent://{own}/ns/t" if "{topic}" in route.path else f"persistent://public/default/{own}"
        with closing(Transactions(self._service_url, topic, "s")) as transactions:
            begun = transactions.begin()
        names["mostSigBits"], names["leastSigBits"] = begun["transaction"].split("/")
        names["ledgerId"], names["entryId"] = begun["acked"].split("/")

    def _others(self, route: Route, names: dict[str, Any]) -> None:
        group = "/admin/v2/resourcegroups/{resourcegroup}"
        if "{resourcegroup}" in route.path and (route.method, route.path) != ("PUT", group):
            self._http.done("PUT", _with_values(group, names), BODIES[group])
        for pattern, call in SET_BEFORE.items():
            if route.method in ("GET", "DELETE") and re.fullmatch(pattern, route.path):
                self._http.done(call.method, _with_values(call.url, names), call.body)


def _with_values(path: str, names: dict[str, Any]) -> str:
    return re.sub(r"\{(\w+)\}", lambda found: urllib.parse.quote(str(names[found[1]]), safe=":"), path)


POLICY = f"{CLUSTER}/namespaceIsolationPolicies/{{policyName}}"
SET_BEFORE = {
    ".*/failureDomains/{domainName}": Call("POST", f"{CLUSTER}/failureDomains/{{domainName}}", {"brokers": ["b:8080"]}),
    ".*/migrate": Call("POST", f"{CLUSTER}/migrate?migrated=true", BODIES[f"{CLUSTER}/migrate"]),
    ".*/namespaceIsolationPolicies.*": Call("POST", POLICY, BODIES[POLICY]),
    ".*/racks-info/{bookie}": Call("POST", "/admin/v2/bookies/racks-info/{bookie}?group=default", {"rack": "/r"}),
    ".*/property/{key}": Call("PUT", f"{NAMESPACE}/property/{{key}}/v"),
    ".*/permissions/{subscription}/{role}": Call(
        "POST", "/admin/v2/namespaces/{tenant}/{namespace}/permissions/subscription/s", ["r"]
    ),
    ".*/persistence/bookieAffinity": Call(
        "POST", f"{NAMESPACE}/persistence/bookieAffinity", BODIES["/persistence/bookieAffinity"]
    ),
}
"""Calls that create what a route shows or deletes, by a pattern of the route's path."""


def _kind(route: Route) -> str:
    """Return the key of a route's inputs: the path after the namespace or the topic, or the whole path."""
    for name in ("{topic}", "{namespace}"):
        if name in route.path:
            rest = route.path.split(name, 1)[1]
            return rest if route.path.startswith(OF_NAMESPACES) else route.path
    return route.path


def _filled(value: Any, names: dict[str, Any]) -> Any:
    """Replace each $name in `value` by its value here. A text that is only $name becomes the value, with its type."""
    if isinstance(value, dict):
        return {key: _filled(item, names) for key, item in value.items()}
    if isinstance(value, list):
        return [_filled(item, names) for item in value]
    if isinstance(value, str) and value[:1] == "$" and value[1:] in names:
        return names[value[1:]]
    if isinstance(value, str):
        return re.sub(r"\$(\w+)", lambda found: str(names.get(found[1], found[0])), value)
    return value


def routes() -> list[Route]:
    """Return all routes except the lab's and those of Pulsar 5, in the same order each time.

    No real broker has the lab's routes, and recordings of a real 5.0.0-M1 call those of Pulsar 5. Routes that stop the
    broker, or block a real one for a while, come last.
    """
    routes = {route for route, _ in all_routes() if not route.path.startswith("/lab") and not _came_with_5_0(route)}
    return sorted(routes, key=lambda each: (_disturbs(each), each.path, each.method))


def _came_with_5_0(route: Route) -> bool:
    return route.offered(PULSAR_5_0) and not route.offered(PULSAR_4_2)


def _disturbs(route: Route) -> int:
    """Return how much a route disturbs others. A real broker answers little during the minute of a /backlog."""
    return 2 * route.path.endswith("/shutdown") + route.path.endswith("/backlog")


def call_all(address: Address, wanted: Iterable[Route]) -> Iterator[tuple[Route, int]]:
    """Call the wanted routes, and yield each route with its status."""
    http = Http(address)
    client = pulsar.Client(address.service_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    stage = Stage(http, client, address.service_url)
    for number, route in enumerate(wanted):
        yield route, http.status(stage.call_of(route, number))
    client.close()


def main() -> None:
    if is_pulsarium():
        raise SystemExit(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        process = BrokerProcess(Path(folder), ["--config", str(CONFIG)])
        try:
            lines = [f"{route.method}\t{route.path}\t{status}" for route, status in call_all(process.address, routes())]
        finally:
            process.stop(40)
    STATUSES.write_text(
        "# method, path, what a real broker answers to the call of every_route.py\n" + "\n".join(lines) + "\n"
    )


if __name__ == "__main__":
    main()
