"""Calls of the admin REST API that prepare the broker for these tests."""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request
import uuid
from dataclasses import dataclass
from typing import Any


class AdminError(Exception):
    """An error of the admin API: an answer whose status is not 2xx."""

    def __init__(self, call: str, status: int, body: str) -> None:
        super().__init__(f"{call}: {status} {body}")
        self.status = status


@dataclass(frozen=True)
class Admin:
    """Calls to the broker at `url`. Topics are full names, namespaces are tenant/namespace."""

    url: str

    def call(self, method: str, path: str, body: object = None) -> Any:
        """Return the JSON of the answer, or None when the answer is empty. Raise `AdminError` for an error status."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                text = answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                raise AdminError(f"{method} {path}", error.code, error.read().decode(errors="replace")) from None
        return json.loads(text) if text.strip() else None

    def answer(self, method: str, path: str, body: object = None, **headers: str) -> tuple[int, str]:
        """Return the status and the text of the answer, also of an error. Send bytes unchanged, other types as JSON."""
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        given = {"Content-Type": "application/json", **headers}
        request = urllib.request.Request(self.url + path, data, given, method=method)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode(errors="replace")

    def text(self, path: str) -> str:
        """Return the answer to a GET as text."""
        with urllib.request.urlopen(self.url + path, timeout=30) as answer:
            return str(answer.read().decode())

    def keep_acknowledgements(self) -> None:
        """Make Pulsarium save the cursors that are due within the next second, because a kill loses unsaved ones."""
        self.call("POST", "/lab/clock/advance", {"seconds": 2})
        self.await_writes()

    def await_writes(self) -> None:
        """Wait until all that the broker has saved is on disk: the answer to a write comes after all earlier ones."""
        self.create_namespace(f"public/{uuid.uuid4().hex}")

    def create_namespace(self, namespace: str) -> None:
        self.call("PUT", f"/admin/v2/namespaces/{namespace}")

    def delete_namespace(self, namespace: str) -> None:
        self.call("DELETE", f"/admin/v2/namespaces/{namespace}?force=true")

    def create_partitioned(self, topic: str, partitions: int) -> None:
        self.call("PUT", f"{_path(topic)}/partitions", partitions)

    def grow(self, topic: str, partitions: int) -> None:
        self.call("POST", f"{_path(topic)}/partitions", partitions)

    def topics(self, namespace: str, domain: str = "persistent") -> list[str]:
        return list(self.call("GET", f"/admin/v2/{domain}/{namespace}"))

    def stats(self, topic: str) -> dict[str, Any]:
        return dict(self.call("GET", f"{_path(topic)}/stats"))

    def backlog(self, topic: str, subscription: str) -> int:
        return int(self.stats(topic)["subscriptions"][subscription]["msgBacklog"])

    def unacknowledged(self, topic: str, subscription: str) -> int:
        """Return how many messages the consumers of the subscription hold, parts of batches counted."""
        consumers = self.stats(topic)["subscriptions"][subscription]["consumers"]
        return sum(int(each["unackedMessages"]) for each in consumers)

    def unload(self, topic: str) -> None:
        self.call("PUT", f"{_path(topic)}/unload")

    def terminate(self, topic: str) -> dict[str, Any]:
        return dict(self.call("POST", f"{_path(topic)}/terminate"))

    def compact(self, topic: str) -> None:
        self.call("PUT", f"{_path(topic)}/compaction")

    def compaction(self, topic: str) -> dict[str, Any]:
        return dict(self.call("GET", f"{_path(topic)}/compaction"))

    def delete(self, topic: str) -> None:
        self.call("DELETE", _path(topic))


def _path(topic: str) -> str:
    domain, _, rest = topic.partition("://")
    return f"/admin/v2/{domain}/{urllib.parse.quote(rest)}"
