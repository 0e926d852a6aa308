"""An adapter and brokers that a test plays, without a broker."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from pulsarium.capture.file import CaptureRecord

ADAPTER = """
import json, sys, time
for line in sys.stdin:
    request = json.loads(line)
    answer = {answers}.get(request["do"], {{"ok": {{}}}})
    if answer is None:
        sys.exit(3)
    print("a library that prints")
    print(json.dumps({{"id": request["id"], **answer}}), flush=True)
"""


def adapter(**answers: Any) -> Sequence[str]:
    """Return the command of an adapter with these answers, by operation. None ends the adapter."""
    told = {name.replace("_", "-"): answer for name, answer in answers.items()}
    about = {"protocol": 2, "client": "played", "version": "1", "topics": ["classic", "scalable"]}
    told.setdefault("hello", {"ok": {**about, "operations": ["open", "close", "producer", "send"]}})
    return [sys.executable, "-c", ADAPTER.format(answers=repr(told))]


class PlayedSide:
    """Brokers that record all calls. `frames` are the records of each scenario."""

    has_scalable_topics = True
    urls = ("pulsar://a:1", "pulsar://b:2")
    records_web_sockets = True
    web_socket_urls = ("ws://a:3", "ws://b:4")

    def __init__(self, frames: Sequence[CaptureRecord] = ()) -> None:
        self.asked: list[tuple[Any, ...]] = []
        self._frames = frames

    def side(self, material: object, pip: int = 0) -> PlayedSide:
        return self

    def begin(self) -> None: ...

    def records(self) -> Sequence[CaptureRecord]:
        return self._frames

    def namespace(self, name: str, **policies: Any) -> None: ...

    def create(self, topic: str, segments: int, properties: dict[str, str]) -> None:
        self.asked.append(("create", segments))

    def __getattr__(self, name: str) -> Any:
        return lambda *given: self.asked.append((name, *given))
