"""The recorded calls of the admin API of a Pulsar 4.2.4, in the order in which they were made.

A line of recorded/*.jsonl is a step of the recorder's own clients (`{"step": ...}`) or a call:

| key | what |
|---|---|
| method, route, url | the route as Pulsar writes it, and what was asked; `<<...>>` is a name that a broker gave |
| headers | those besides the usual ones: Accept, and Content-Type with a body |
| json, text | the body, if there was one: a value, or text as it was sent |
| status, answer | what came: a value, or "" for an empty body |
| plain | the answer was text and not JSON |
| page, cut | it was the container's own page, or too long to be kept; it is left out |
| type, kept | the Content-Type, and the headers Allow, Location and X-Pulsar-*, where there were any |
| varies | what another recording of Pulsar has otherwise: its `status`, its `answer`, or the `texts` of its error |
| unrecorded | a preparation whose answer nobody kept |
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

FOLDER = Path(__file__).with_name("recorded")
AUTH = "auth"
"""The recording of a second broker, with tokens and authorization."""

Varying = Literal["status", "answer", "texts"]


@dataclass(frozen=True)
class Step:
    """An action of the recorder's clients between two calls (steps.py)."""

    name: str


@dataclass(frozen=True)
class Answer:
    """An answer. `plain` tells text from JSON, `kept` are the headers that matter. Status 0: there was none."""

    status: int
    body: Any = ""
    plain: bool = False
    content_type: str = ""
    kept: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Call:
    """A request and Pulsar's answer. `compared` is False where only the status is known."""

    recording: str
    method: str
    route: str
    url: str
    headers: Mapping[str, str]
    body: str | None
    note: str
    golden: Answer
    compared: bool
    varies: Varying | None
    recorded: bool

    @property
    def resource(self) -> str:
        """Return the resource under which the report counts the call."""
        if self.recording == AUTH:
            return AUTH
        if found := re.match(r"/admin/v[23]/([a-z-]+)", self.route):
            return found[1]
        return {"lookup": "lookup", "topics": "rest-producer"}.get(self.route.split("/")[1], "other")

    @property
    def counts(self) -> bool:
        """Return whether all recordings of Pulsar have this status."""
        return self.varies != "status"

    @property
    def body_counts(self) -> bool:
        """Return whether more than the status is known, and is the same in all recordings of Pulsar."""
        return self.compared and self.method != "HEAD" and self.varies not in ("status", "answer")

    @property
    def text_counts(self) -> bool:
        """Return whether all recordings of Pulsar give an error in these words."""
        return self.varies is None

    def __str__(self) -> str:
        return f"{self.method} {self.url}" + (f" [{self.note}]" if self.note else "")


def load(*, auth: bool, folder: Path = FOLDER) -> list[Call | Step]:
    """Return what was recorded on the broker with authorization, or all that was recorded on the open one."""
    files = [path for path in sorted(folder.glob("*.jsonl")) if (path.stem == AUTH) == auth]
    return [line for path in files for line in _lines(path)]


def _lines(path: Path) -> Iterator[Call | Step]:
    for text in path.read_text().splitlines():
        line = json.loads(text)
        yield Step(line["step"]) if "step" in line else _call(path.stem, line)


def _call(recording: str, line: Mapping[str, Any]) -> Call:
    body: str | None = line.get("text")
    if "json" in line:
        body = json.dumps(line["json"])
    headers = {"Accept": "application/json"} | ({} if body is None else {"Content-Type": "application/json"})
    return Call(
        recording=recording,
        method=line["method"],
        route=line["route"],
        url=line["url"],
        headers=headers | line.get("headers", {}),
        body=body,
        note=line.get("note", ""),
        golden=Answer(
            line.get("status", 0), line.get("answer", ""), "plain" in line, line.get("type", ""), line.get("kept", {})
        ),
        compared="page" not in line and "cut" not in line,
        varies=line.get("varies"),
        recorded="unrecorded" not in line,
    )
