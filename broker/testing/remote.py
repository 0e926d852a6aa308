"""A broker in another process, for tests: the methods of `PulsarBroker` that its /lab offers over HTTP."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta
from functools import cached_property
from types import MappingProxyType
from typing import Any, Final, NoReturn, Unpack
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode
from urllib.request import ProxyHandler, Request, build_opener

from pulsarium.broker.lab.arguments import Selected, Which, json_arguments
from pulsarium.broker.lab.faults import Action, FaultError
from pulsarium.broker.lab.faults.text import action_from_json, action_to_json
from pulsarium.broker.lab.steering import ClockError
from pulsarium.proto.topic_name import TopicName

ONLY_HERE: Final = "only a broker in this process has {}: start one with pulsarium.broker.running(), {}"
INSTEAD: Final = {
    "call": "or send a request to its admin_url",
    "service_urls": "or use `pulsarium serve --ready-file`",
    "masks": "or use `pulsarium mask`",
    "captures": "or use `pulsarium capture`",
    "linter": "or use `pulsarium lint`",
    "checker": "or use `pulsarium check --live`",
    "why": "or use `pulsarium why`",
    "snapshot": "or use `pulsarium state`",
    "restore": "or use `pulsarium state`",
    "seed": "or use `pulsarium state`",
    "kill": "which no other run shares",
    "bring_back": "which no other run shares",
    "assert_produced": "or consume the messages",
}
TIMEOUT: Final = 5.0  # seconds
NO_QUERY: Final[Mapping[str, object]] = MappingProxyType({})


class NotOverHttp(AttributeError):
    """A method that only a broker in the test's own process has. The text says what to do instead."""


class RemoteRefusal(Exception):
    """A refusal of the broker."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class Http:
    """Requests to one broker, in plain code."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        self._open = build_opener(ProxyHandler({})).open

    def call(self, method: str, path: str, body: object = None, query: Mapping[str, object] = NO_QUERY) -> Any:
        """Return the JSON of the answer, or None. Raise `RemoteRefusal`, or `ConnectionError` without a broker."""
        target = f"{self.url}{path}?{urlencode(query)}" if query else f"{self.url}{path}"
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json", "X-Pulsarium-By": "test"}
        request = Request(target, data, headers, method=method)
        try:
            with self._open(request) as answer:
                said = answer.read()
        except HTTPError as error:
            raise RemoteRefusal(error.code, _reason(error)) from None
        except URLError as error:
            raise ConnectionError(f"no broker answers at {self.url}: {error.reason}; start it first") from None
        return json.loads(said) if said else None


def _reason(error: HTTPError) -> str:
    said = error.read().decode(errors="replace")
    try:
        return str(json.loads(said)["reason"])
    except (ValueError, KeyError, TypeError):
        return said or f"status {error.code}"


class RemoteClock:
    """A clock of a broker in another process: the broker's, or that of a namespace."""

    def __init__(self, http: Http, namespace: str | None = None) -> None:
        self._http = http
        self._query = {} if namespace is None else {"namespace": namespace}

    def of(self, namespace: str) -> RemoteClock:
        """Return the clock of a namespace. The first call that steers it gives the namespace its own time."""
        clock = RemoteClock(self._http, namespace)
        clock._shown()
        return clock

    def _call(self, method: str, path: str = "", body: object = None) -> Mapping[str, Any]:
        try:
            shown: Mapping[str, Any] = self._http.call(method, f"/lab/clock{path}", body, self._query)
        except RemoteRefusal as refused:
            raise ClockError(str(refused)) from None
        return shown

    def _shown(self) -> Mapping[str, Any]:
        return self._call("GET")

    @property
    def frozen(self) -> bool:
        """Return whether the clock is frozen."""
        return bool(self._shown()["frozen"])

    @property
    def offset_ms(self) -> int:
        """Return how far the clock is ahead of the machine's clock, in milliseconds. Below 0, the clock is behind."""
        return int(self._shown()["offsetMs"])

    @property
    def next_in(self) -> float | None:
        """Return the seconds until the next timer that runs once, or None when no timer waits."""
        seconds: float | None = self._shown()["nextInSeconds"]
        return seconds

    @property
    def included(self) -> list[str]:
        """Return the names of the included timers."""
        return list(self._shown().get("included", ()))

    @property
    def namespaces(self) -> list[str]:
        """Return the names of the namespaces that have their own time."""
        return list(self._shown().get("namespaces", ()))

    @property
    def is_own(self) -> bool:
        """Return whether the namespace has its own time, and does not follow the broker's clock."""
        return bool(self._shown().get("own", True))

    def now_ms(self) -> int:
        """Return the clock's time, in milliseconds since the epoch."""
        return int(self._shown()["nowMs"])

    def freeze(self) -> None:
        """Freeze the clock."""
        self._call("POST", "/freeze")

    def resume(self) -> None:
        """Let the clock run again from the time that it shows."""
        self._call("POST", "/resume")

    def reset(self) -> None:
        """Return to the machine's time, or a namespace to the broker's."""
        self._call("POST", "/reset")

    def advance(self, time: float | timedelta) -> None:
        """Advance the clock by so many seconds, and run the timers that become due. Raise `ClockError`."""
        seconds = time.total_seconds() if isinstance(time, timedelta) else time
        self._call("POST", "/advance", {"seconds": seconds})

    def run_next(self) -> float:
        """Advance the clock to the next timer that runs once, and return by how many seconds. Raise `ClockError`."""
        return float(self._call("POST", "/run-next")["advancedSeconds"])

    def include(self, *names: str) -> None:
        """Put "keep-alive" or "token-expiry" under this clock too."""
        self._call("POST", "/include", {"names": names})

    def exclude(self, *names: str) -> None:
        """Return the named timers to the machine's clock."""
        self._call("POST", "/exclude", {"names": names})

    @property
    def auto_advance(self) -> bool:
        """Return whether an idle broker goes to its next timer by itself."""
        return bool(self._shown()["autoAdvance"])

    @auto_advance.setter
    def auto_advance(self, on: bool) -> None:
        self._call("POST", "/auto-advance", {"on": on})


class RemoteRule:
    """A fault rule of a broker in another process. Leaving its `with` block removes the rule."""

    def __init__(self, http: Http, shown: Mapping[str, Any]) -> None:
        self._http = http
        self.id = int(shown["id"])

    def __enter__(self) -> RemoteRule:
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()

    @property
    def hits(self) -> int:
        """Return how often the rule has acted. A rule that observes counts the frames."""
        return int(self._http.call("GET", f"/lab/faults/{self.id}")["hits"])

    @property
    def matched(self) -> int:
        """Return how many frames matched, also those that the rule passed over."""
        return int(self._http.call("GET", f"/lab/faults/{self.id}")["matched"])

    def wait(self, hits: int = 1, *, timeout: float = 5.0) -> None:
        """Wait until the rule has acted `hits` times in all. Raise `AssertionError` after `timeout` seconds."""
        __tracebackhide__ = True
        try:
            self._http.call("GET", f"/lab/faults/{self.id}/wait", query={"n": hits, "timeout": timeout})
        except RemoteRefusal as refused:
            raise (AssertionError if refused.status == 408 else FaultError)(str(refused)) from None

    def remove(self) -> None:
        """Remove the rule."""
        try:
            self._http.call("DELETE", f"/lab/faults/{self.id}")
        except RemoteRefusal as refused:
            if refused.status != 404:
                raise


class RemoteFaults:
    """The faults that this test adds to a broker in another process. Other runs may have rules there too."""

    def __init__(self, http: Http) -> None:
        self._http = http
        self.rules: list[RemoteRule] = []

    def add(self, action: Action | str | Mapping[str, object], command: str, **which: Unpack[Which]) -> RemoteRule:
        """Apply `action` to matching frames of `command`, by default to the first one only. Raise `FaultError`."""
        if "predicate" in which:
            raise FaultError("a predicate is a function, which no other process can run: select by the other arguments")
        found = action if isinstance(action, Action) else action_from_json(action)
        known = {argument.name: name for name, argument in json_arguments(Which).items()}
        if unknown := which.keys() - known.keys():
            raise TypeError(f"a fault has no argument {', '.join(sorted(unknown))}")
        arguments = {known[name]: value for name, value in which.items()}
        asked = {"command": command, "action": action_to_json(found), **arguments}
        try:
            rule = RemoteRule(self._http, self._http.call("POST", "/lab/faults", asked))
        except RemoteRefusal as refused:
            raise FaultError(str(refused)) from None
        self.rules.append(rule)
        return rule

    def observe(self, command: str, **which: Unpack[Selected]) -> RemoteRule:
        """Count matching frames in the rule's `hits`, and change nothing. Raise `FaultError`."""
        return self.add("observe", command, **which)

    def clear(self) -> None:
        """Remove the rules that were added here."""
        while self.rules:
            self.rules.pop().remove()


class RemoteBroker:
    """A broker that runs elsewhere, and that other tests may use at the same time.

    Methods of `PulsarBroker` that need the broker's own process raise `NotOverHttp`.
    """

    def __init__(self, admin_url: str) -> None:
        self._http = Http(admin_url)
        self.admin_url = self._http.url
        """The URL http://host:port."""
        try:
            self._http.call("GET", "/lab/clock")
        except RemoteRefusal as refused:
            raise ConnectionError(f"the broker at {admin_url} has no lab ({refused}): name one of Pulsarium") from None
        self.service_url = str(self._http.call("GET", "/lookup/v2/topic/persistent/public/default/x")["brokerUrl"])
        """The URL pulsar://host:port."""

    def __repr__(self) -> str:
        return f"<Pulsarium at {self.service_url} and {self.admin_url}>"

    def __getattr__(self, name: str) -> NoReturn:
        if name in INSTEAD:
            raise NotOverHttp(ONLY_HERE.format(name, INSTEAD[name]))
        raise AttributeError(f"a broker has no {name}")

    @cached_property
    def clock(self) -> RemoteClock:
        """Return the broker's clock."""
        return RemoteClock(self._http)

    @cached_property
    def faults(self) -> RemoteFaults:
        """Return the rules that this run adds. Name the topic, because other tests have connections."""
        return RemoteFaults(self._http)

    def assert_delivered(self, topic: str, subscription: str, count: int = 1, *, timeout: float = TIMEOUT) -> None:
        """Assert that the broker sent at least this number of messages to consumers of the subscription.

        See `PulsarBroker.assert_delivered`. Raise `AssertionError` after `timeout` seconds.
        """
        __tracebackhide__ = True
        self._wait(topic=topic, subscription=subscription, state="delivered", count=count, timeout=timeout)

    def assert_acked(
        self, topic: str, subscription: str, count: int | None = None, *, timeout: float = TIMEOUT
    ) -> None:
        """Assert that all messages are acknowledged. Raise `AssertionError` after `timeout` seconds.

        With a `count`, raise `NotOverHttp`.
        """
        __tracebackhide__ = True
        if count is not None:
            raise NotOverHttp(ONLY_HERE.format("assert_acked with a number of messages", "or leave the number out"))
        self._wait(topic=topic, subscription=subscription, state="caught-up", timeout=timeout)

    def _wait(self, **query: object) -> None:
        __tracebackhide__ = True
        try:
            self._http.call("GET", "/lab/wait", query=query)
        except RemoteRefusal as refused:
            raise (AssertionError if refused.status == 408 else ValueError)(str(refused)) from None

    def reset(self) -> None:
        """Delete all topics, subscriptions, policies, faults and masks, also those of other tests."""
        self._http.call("POST", "/lab/reset")

    def create_namespace(self, name: str, **policies: object) -> str:
        """Create a namespace, and return its name. See `PulsarBroker.create_namespace`."""
        try:
            made = self._http.call("POST", "/lab/namespaces", {"name": name, "policies": policies})
        except RemoteRefusal as refused:
            raise ValueError(str(refused)) from None
        return str(made["name"])

    def delete_namespace(self, name: str) -> None:
        """Delete a namespace with its topics, now or after the last client has left. A missing namespace is ignored."""
        self._http.call("DELETE", f"/lab/namespaces/{quote(name)}")

    def create_topic(self, topic: str, *, partitions: int = 0) -> str:
        """Create a topic with `partitions`, or without when 0, and return its full name. Raise `ValueError`."""
        name = TopicName.parse(topic)
        path = f"/admin/v2/{name.domain}/{name.namespace_name}/{quote(name.local_name, safe='')}"
        try:
            self._http.call("PUT", f"{path}/partitions" if partitions else path, partitions or None)
        except RemoteRefusal as refused:
            raise ValueError(str(refused)) from None
        return str(name)
