"""The broker's side of a scenario: brokers in the kit's own process, their REST API, clock, faults and frames."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote

from pulsarium.broker.config.proposals import BACKLOG_AGE
from pulsarium.broker.lab.capture import Capture
from pulsarium.broker.lab.proxy.upstream import Upstream, context_to_brokers
from pulsarium.broker.proxying import ProxyOptions, RunningProxy, open_proxy, recording
from pulsarium.broker.testing import BrokerCapture, PulsarBroker, running
from pulsarium.broker.testing.thread import LoopThread
from pulsarium.capture.file import CaptureReader, CaptureRecord
from pulsarium.conformance.material import Material

_SECONDS = 20.0


class SideFault(Exception):
    """The broker refused work that a scenario needs."""


class Unavailable(Exception):
    """The brokers cannot do what a scenario needs."""


class Side(Protocol):
    """The operations of scenarios on brokers."""

    @property
    def urls(self) -> Sequence[str]: ...
    @property
    def web_socket_urls(self) -> Sequence[str]: ...
    @property
    def tls_url(self) -> str: ...
    @property
    def web_socket_tls_url(self) -> str: ...
    @property
    def records_web_sockets(self) -> bool: ...
    @property
    def admin_url(self) -> str: ...
    def namespace(self, name: str, **policies: Any) -> None: ...
    @property
    def has_scalable_topics(self) -> bool: ...
    def create(self, topic: str, segments: int, properties: dict[str, str]) -> None: ...
    def partition(self, topic: str, partitions: int) -> None: ...
    def stats(self, topic: str) -> dict[str, Any]: ...
    def compact(self, topic: str) -> None: ...
    def terminate(self, topic: str) -> None: ...
    def owner(self, topic: str) -> int: ...
    def call(self, method: str, path: str, body: Any = None) -> Any: ...
    def delete(self, topic: str) -> None: ...
    def layout(self, topic: str) -> dict[str, Any]: ...
    def split(self, topic: str, segment: int) -> None: ...
    def merge(self, topic: str, first: int, second: int) -> None: ...
    def backlog(self, topic: str, segment: dict[str, Any], subscription: str) -> int: ...
    def unload(self, topic: str) -> None: ...
    def skip(self, topic: str, subscription: str, messages: int) -> None: ...
    def kill(self, broker: int) -> None: ...
    def bring_back(self, broker: int) -> None: ...
    def advance(self, seconds: float) -> None: ...
    def cut(self) -> None: ...
    def damage(self, topic: str, entries: int) -> None: ...
    def begin(self) -> None: ...
    def records(self) -> Sequence[CaptureRecord]: ...


class Sides(Protocol):
    """Brokers for all scenarios: without authentication, and with it."""

    def side(self, material: Material | None, pip: int = 0) -> Side: ...


class RestSide:
    """Work on brokers over their REST API."""

    def __init__(self, urls: Sequence[str], admin_url: str, token: str = "") -> None:
        self.urls = urls
        self._urls_of_brokers = urls
        self.admin_url = admin_url
        self._token = token

    def namespace(self, name: str, **policies: Any) -> None:
        self.call("PUT", f"/admin/v2/namespaces/{name}", policies)

    def create(self, topic: str, segments: int, properties: dict[str, str]) -> None:
        self.call("PUT", f"{_path(topic)}?numInitialSegments={segments}", properties)

    @cached_property
    def has_scalable_topics(self) -> bool:
        """Return whether the broker is of Pulsar 5."""
        try:
            self.call("GET", "/admin/v2/scalable/public/default")
        except SideFault:
            return False
        return True

    def partition(self, topic: str, partitions: int) -> None:
        """Create a partitioned topic."""
        self.call("PUT", f"{admin_path(topic)}/partitions", partitions)

    def stats(self, topic: str) -> dict[str, Any]:
        return dict(self.call("GET", f"{admin_path(topic)}/stats"))

    def compact(self, topic: str) -> None:
        """Compact a topic, and wait until that is done."""
        end = time.monotonic() + _SECONDS
        while not self._compacted(topic, end):
            if time.monotonic() > end:
                raise SideFault(f"the compacted ledger of {topic} is not in use after {_SECONDS:g} s")
            self.call("PUT", f"{admin_path(topic)}/unload")

    def _compacted(self, topic: str, end: float) -> bool:
        """Compact a topic, and return whether it has a compacted ledger.

        A real broker takes a topic for empty whose messages came before its transaction buffer was recovered, and says
        SUCCESS nonetheless. An unload helps.
        """
        path = f"{admin_path(topic)}/compaction"
        self.call("PUT", path)
        while (status := self.call("GET", path)["status"]) != "SUCCESS":
            if status != "RUNNING" or time.monotonic() > end:
                raise SideFault(f"the compaction of {topic} ended with {status}")
            time.sleep(0.02)
        soon = time.monotonic() + 1.0  # A real broker says so before it reads the compacted ledger.
        while self.call("GET", f"{admin_path(topic)}/internalStats")["compactedLedger"]["ledgerId"] < 0:
            if time.monotonic() > soon:
                return False
            time.sleep(0.02)
        return True

    def terminate(self, topic: str) -> None:
        self.call("POST", f"{admin_path(topic)}/terminate")

    def owner(self, topic: str) -> int:
        """Return the number of the broker that has a topic."""
        path = admin_path(topic).replace("/admin/v2/", "/lookup/v2/topic/")
        return list(self._urls_of_brokers).index(self.call("GET", path)["brokerUrl"])

    def delete(self, topic: str) -> None:
        self.call("DELETE", f"{_path(topic)}?force=true")

    def layout(self, topic: str) -> dict[str, Any]:
        return dict(self.call("GET", _path(topic)))

    def split(self, topic: str, segment: int) -> None:
        self.call("POST", f"{_path(topic)}/split/{segment}")

    def merge(self, topic: str, first: int, second: int) -> None:
        self.call("POST", f"{_path(topic)}/merge/{first}/{second}")

    def backlog(self, topic: str, segment: dict[str, Any], subscription: str) -> int:
        """Return the backlog of a subscription on a segment."""
        place = topic.removeprefix("topic://")
        return int(
            self.call("GET", f"/admin/v2/segments/{place}/{segment['name']}/subscription/{subscription}/backlog")
        )

    def unload(self, topic: str) -> None:
        """Unload the bundles of a topic's namespace, so that its topics or segments move or load again."""
        namespace = "/".join(topic.partition("://")[2].split("/")[:2])
        self.call("PUT", f"/admin/v2/namespaces/{namespace}/unload")

    def skip(self, topic: str, subscription: str, messages: int) -> None:
        """Skip the next unacknowledged messages of a subscription of a classic topic."""
        self.call("POST", f"{admin_path(topic)}/subscription/{subscription}/skip/{messages}")

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """Send a request to the REST API, and return the JSON of the answer. Raise `SideFault` for an error."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        url = path if path.startswith("http") else self.admin_url + path
        request = urllib.request.Request(url, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=_SECONDS) as answer:
                told = answer.read()
        except urllib.error.HTTPError as error:
            if error.code == 307:  # to the owner; urllib repeats a GET alone
                return self.call(method, error.headers["Location"], body)
            reason = error.read().decode(errors="replace")[:300]
            raise SideFault(f"{method} {path}: {error.code} {reason}") from None
        except OSError as error:
            raise SideFault(f"{method} {path}: {error}") from None
        return json.loads(told) if told else None


class OurBrokers(RestSide):
    """Brokers of Pulsarium."""

    records_web_sockets = True

    def __init__(self, broker: PulsarBroker, token: str = "") -> None:
        super().__init__(broker.service_urls, broker.admin_url, token)
        self._broker = broker
        self._capture: BrokerCapture | None = None
        self.clock_moved = False

    @property
    def web_socket_urls(self) -> Sequence[str]:
        """Return the ws:// URL of each broker's HTTP port."""
        admin_urls = self._broker.call(lambda running: [each.admin_url for each in running.brokers])
        return [_web_socket(url) for url in admin_urls]

    @property
    def tls_url(self) -> str:
        return self._broker.service_url_tls or ""

    @property
    def web_socket_tls_url(self) -> str:
        return _web_socket(self._broker.admin_url_tls or "")

    def begin(self) -> None:
        """Forget the frames of the scenario before, and bring killed brokers back."""
        if self._capture is not None:
            self._capture.stop()
        self._capture = self._broker.captures.start()

    def records(self) -> Sequence[CaptureRecord]:
        assert self._capture is not None
        return self._capture.records()

    def kill(self, broker: int) -> None:
        self._broker.kill(broker)

    def bring_back(self, broker: int) -> None:
        self._broker.bring_back(broker)

    def advance(self, seconds: float) -> None:
        self.clock_moved = True
        self._broker.clock.advance(seconds)

    def cut(self) -> None:
        """Close every connection at its next PING or command."""
        for number in range(len(self.urls)):
            self._broker.kill(number)
            self._broker.bring_back(number)

    def damage(self, topic: str, entries: int) -> None:
        """Give the next entries of a topic a wrong checksum on their way to clients."""
        self._broker.faults.add("corrupt", "MESSAGE", topic=topic, count=entries)


class ProxiedBrokers(OurBrokers):
    """Brokers of Pulsarium that clients reach through proxies, except for WebSockets. The kit asks the brokers."""

    def __init__(self, broker: PulsarBroker, token: str, urls: Sequence[str], tls_url: str) -> None:
        super().__init__(broker, token)
        self.urls = urls
        self._tls_url = tls_url

    @property
    def tls_url(self) -> str:
        return self._tls_url


class GivenBroker(RestSide):
    """A running broker, behind a proxy that records the frames."""

    tls_url = ""
    web_socket_tls_url = ""
    records_web_sockets = False

    def __init__(self, url: str, admin_url: str, capture: Capture) -> None:
        super().__init__([url], admin_url)
        self.web_socket_urls = [_web_socket(admin_url)]  # around the proxy, which carries no HTTP
        self._capture = capture
        self._begin = 0

    def begin(self) -> None:
        """Forget the frames of the scenario before."""
        self._begin = self._capture.records_written

    def records(self) -> Sequence[CaptureRecord]:
        _, found = self._capture.read(self._begin, 1 << 30)
        return list(CaptureReader().feed(b"".join([self._capture.head, *found])))

    def kill(self, broker: int) -> None:
        raise Unavailable("needs a broker that the kit can kill")

    def bring_back(self, broker: int) -> None:
        raise Unavailable("needs a broker that the kit can kill")

    def advance(self, seconds: float) -> None:
        raise Unavailable("needs a broker whose clock the kit can move")

    def cut(self) -> None:
        raise Unavailable("needs a broker whose connections the kit can end")

    def damage(self, topic: str, entries: int) -> None:
        raise Unavailable("needs a broker whose frames the kit can damage")


def admin_path(topic: str) -> str:
    """Return the path of a classic topic."""
    domain, _, name = topic.partition("://")
    return f"/admin/v2/{domain}/{quote(name)}"


def _web_socket(url: str) -> str:
    return f"ws{url.removeprefix('http')}"


def _path(topic: str) -> str:
    return "/admin/v2/scalable/" + quote(topic.removeprefix("topic://"))


_METADATA = "org.apache.pulsar.common.intercept.Append{}MetadataInterceptor"
_SETTINGS = {
    "transactionCoordinatorEnabled": "true",
    "acknowledgmentAtBatchIndexLevelEnabled": "true",
    "brokerEntryMetadataInterceptors": f"{_METADATA.format('BrokerTimestamp')},{_METADATA.format('Index')}",
    "exposingBrokerEntryMetadataToClientEnabled": "true",
    "delayedDeliveryTickTimeMillis": "100",
    "scalableTopicAutoScaleEnabled": "false",
    "scalableTopicConsumerSessionGracePeriodSeconds": "60",
}


_OF_PROPOSALS = {
    BACKLOG_AGE: {"exposeSubscriptionBacklogAgeInPrometheus": "true", "preciseTimeBasedBacklogQuotaCheck": "true"},
}


class OurSides:
    """Clusters of brokers of Pulsarium, which start when a scenario needs them."""

    def __init__(
        self,
        profile: str,
        max_protocol_version: int | None,
        number: int,
        stack: ExitStack,
        pip: Collection[int] = (),
        *,
        proxied: bool = False,
    ) -> None:
        self._profile = profile
        self._proxied = proxied
        self._pip = pip
        self._number = number
        self._max_protocol_version = max_protocol_version
        self._stack = stack
        self._of_open = stack.enter_context(ExitStack())
        self._open: OurBrokers | None = None
        self._secured: OurBrokers | None = None
        self._proposing: dict[tuple[int, Path | None], OurBrokers] = {}

    def side(self, material: Material | None, pip: int = 0) -> Side:
        """Return brokers that let everybody in, or those with the tokens and certificates of `material`.

        With `pip`, return brokers of their own that have this proposal.
        """
        if pip:
            return self._with_proposal(pip, material)
        if material is None:
            if self._open is None or self._open.clock_moved:  # clients compare the broker's time with their own
                self._of_open.close()
                self._open = self._started(self._of_open, {})
            return self._open
        self._secured = self._secured or self._started(self._stack, material.settings(), material.token)
        return self._secured

    def _with_proposal(self, pip: int, material: Material | None) -> Side:
        key = pip, None if material is None else material.folder
        if key not in self._proposing:
            settings = {} if material is None else {**material.settings(), **material.key_settings()}
            token = "" if material is None else material.token
            self._proposing[key] = self._started(self._stack, _OF_PROPOSALS.get(pip, {}) | settings, token, pip)
        return self._proposing[key]

    def _started(self, stack: ExitStack, settings: Mapping[str, str], token: str = "", pip: int = 0) -> OurBrokers:
        broker = stack.enter_context(self._running(settings, pip))
        if not self._proxied:
            return OurBrokers(broker, token)
        urls = [_proxy(stack, ProxyOptions(upstream=Upstream.of(url))).service_url for url in broker.service_urls]
        tls_url = broker.service_url_tls
        if tls_url is None:
            return ProxiedBrokers(broker, token, urls, "")
        certificate, key = (Path(settings[name]) for name in ("tlsCertificateFilePath", "tlsKeyFilePath"))
        both = ProxyOptions(
            upstream=Upstream.of(tls_url),
            tls=context_to_brokers(insecure=True),
            tls_port=0,
            tls_cert=certificate,
            tls_key=key,
        )
        return ProxiedBrokers(broker, token, urls, _proxy(stack, both).service_url_tls or "")

    def _running(self, settings: Mapping[str, str], pip: int) -> AbstractContextManager[PulsarBroker]:
        return running(
            profile=self._profile,
            max_protocol_version=self._max_protocol_version,
            pip=[*self._pip, *([pip] if pip else [])],
            brokers=self._number,
            set={**_SETTINGS, **settings},
        )


def _proxy(stack: ExitStack, options: ProxyOptions) -> RunningProxy:
    """Run a proxy in front of a broker until the stack closes."""
    thread = LoopThread(partial(open_proxy, options), "conformance proxy")
    stack.callback(thread.stop)
    return thread.start()


@contextmanager
def our_brokers(
    profile: str,
    max_protocol_version: int | None = None,
    *,
    number: int = 2,
    pip: Collection[int] = (),
    proxied: bool = False,
) -> Iterator[OurSides]:
    """Run so many brokers with a profile, and a limit of the protocol version or None, for the length of a block.

    `pip` has the proposals to switch on. With `proxied`, clients reach the brokers through proxies.
    """
    with ExitStack() as stack:
        yield OurSides(profile, max_protocol_version, number, stack, pip, proxied=proxied)


class GivenSides:
    """A running broker for all scenarios but those that need tokens and TLS, or a proposal."""

    def __init__(self, broker: GivenBroker) -> None:
        self._broker = broker

    def side(self, material: Material | None, pip: int = 0) -> Side:
        if pip:
            raise Unavailable(f"needs a broker with PIP-{pip}, which the kit starts")
        if material is not None:
            raise Unavailable("needs a broker with tokens and TLS, which the kit starts")
        return self._broker


def given_broker(url: str, admin_url: str, folder: Path) -> AbstractContextManager[GivenSides]:
    """Run a proxy in front of a broker for the length of a block. Raise `ValueError` for a URL that it cannot take."""
    return _proxied(Upstream.plain(url), admin_url, folder)


@contextmanager
def _proxied(target: Upstream, admin_url: str, folder: Path) -> Iterator[GivenSides]:
    options = ProxyOptions(upstream=target)
    thread = LoopThread(partial(recording, options, folder / "broker.pulscap"), "conformance proxy")
    capture, address = thread.start()
    try:
        yield GivenSides(GivenBroker(address, admin_url.rstrip("/"), capture))
    finally:
        thread.stop()
