"""The broker's side of a scenario: brokers in the kit's own process, their REST API, clock, faults and frames."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol
from urllib.parse import quote

from pulsarium.broker.testing import BrokerCapture, PulsarBroker, running
from pulsarium.capture.file import Record

SPECS = {"5.0": "pulsar-5.0", "5.0-m1": "pulsar-5.0-m1"}
"""The specification of a run, and the profile of its brokers."""
_SECONDS = 20.0


class SideFault(Exception):
    """The broker refused work that a scenario needs."""


class Side(Protocol):
    """The operations of scenarios on brokers."""

    @property
    def urls(self) -> Sequence[str]: ...
    def namespace(self, name: str, **policies: Any) -> None: ...
    def create(self, topic: str, segments: int, properties: dict[str, str]) -> None: ...
    def delete(self, topic: str) -> None: ...
    def layout(self, topic: str) -> dict[str, Any]: ...
    def split(self, topic: str, segment: int) -> None: ...
    def merge(self, topic: str, first: int, second: int) -> None: ...
    def post(self, path: str, body: Any = None) -> Any: ...
    def backlog(self, topic: str, segment: dict[str, Any], subscription: str) -> int: ...
    def unload(self, topic: str) -> None: ...
    def kill(self, broker: int) -> None: ...
    def bring_back(self, broker: int) -> None: ...
    def advance(self, seconds: float) -> None: ...
    def cut(self) -> None: ...
    def begin(self) -> None: ...
    def records(self) -> Sequence[Record]: ...


class OurBrokers:
    """Two brokers of Pulsarium."""

    def __init__(self, broker: PulsarBroker) -> None:
        self._broker = broker
        self._capture: BrokerCapture | None = None

    @property
    def urls(self) -> Sequence[str]:
        return self._broker.service_urls

    def begin(self) -> None:
        """Forget the frames of the scenario before, and bring killed brokers back."""
        if self._capture is not None:
            self._capture.stop()
        self._capture = self._broker.captures.start()

    def records(self) -> Sequence[Record]:
        assert self._capture is not None
        return self._capture.records()

    def namespace(self, name: str, **policies: Any) -> None:
        self._call("PUT", f"/admin/v2/namespaces/{name}", policies)

    def create(self, topic: str, segments: int, properties: dict[str, str]) -> None:
        self._call("PUT", f"{_path(topic)}?numInitialSegments={segments}", properties)

    def delete(self, topic: str) -> None:
        self._call("DELETE", f"{_path(topic)}?force=true")

    def layout(self, topic: str) -> dict[str, Any]:
        return dict(self._call("GET", _path(topic)))

    def split(self, topic: str, segment: int) -> None:
        self._call("POST", f"{_path(topic)}/split/{segment}")

    def merge(self, topic: str, first: int, second: int) -> None:
        self._call("POST", f"{_path(topic)}/merge/{first}/{second}")

    def post(self, path: str, body: Any = None) -> Any:
        """Send a POST. Raise `SideFault` for an error."""
        return self._call("POST", path, body)

    def backlog(self, topic: str, segment: dict[str, Any], subscription: str) -> int:
        """Return the backlog of a subscription on a segment."""
        place = topic.removeprefix("topic://")
        return int(
            self._call("GET", f"/admin/v2/segments/{place}/{segment['name']}/subscription/{subscription}/backlog")
        )

    def unload(self, topic: str) -> None:
        """Unload the bundles of a topic's namespace, so that its segments move or load again."""
        namespace = "/".join(topic.removeprefix("topic://").split("/")[:2])
        self._call("PUT", f"/admin/v2/namespaces/{namespace}/unload")

    def kill(self, broker: int) -> None:
        self._broker.kill(broker)

    def bring_back(self, broker: int) -> None:
        self._broker.bring_back(broker)

    def advance(self, seconds: float) -> None:
        self._broker.clock.advance(seconds)

    def cut(self) -> None:
        """Close every connection at its next PING or command."""
        for number in range(len(self.urls)):
            self._broker.kill(number)
            self._broker.bring_back(number)

    def _call(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            self._broker.admin_url + path, data, {"Content-Type": "application/json"}, method=method
        )
        try:
            with urllib.request.urlopen(request, timeout=_SECONDS) as answer:
                told = answer.read()
        except urllib.error.HTTPError as error:
            reason = error.read().decode(errors="replace")[:300]
            raise SideFault(f"{method} {path}: {error.code} {reason}") from None
        except OSError as error:
            raise SideFault(f"{method} {path}: {error}") from None
        return json.loads(told) if told else None


def _path(topic: str) -> str:
    return "/admin/v2/scalable/" + quote(topic.removeprefix("topic://"))


@contextmanager
def our_brokers(spec: str) -> Iterator[OurBrokers]:
    """Run two brokers with the profile of a specification for the length of a block."""
    settings = {
        "transactionCoordinatorEnabled": "true",
        "scalableTopicAutoScaleEnabled": "false",
        "scalableTopicConsumerSessionGracePeriodSeconds": "60",
    }
    with running(profile=SPECS[spec], brokers=2, set=settings) as broker:
        yield OurBrokers(broker)
