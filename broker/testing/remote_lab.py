"""The lab of a broker in another process, for tests: its clock, faults, masks and captures over HTTP."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, Self, Unpack

from pulsarium.broker.lab.arguments import (
    Selected,
    Which,
    Worn,
    arguments_of,
    check_names,
    json_arguments,
    json_name,
)
from pulsarium.broker.lab.faults import Action, FaultError
from pulsarium.broker.lab.faults.text import action_from_json, action_to_json
from pulsarium.broker.lab.masks import Mask
from pulsarium.broker.lab.steering import ClockError
from pulsarium.broker.testing.faults import NamespaceFaults
from pulsarium.broker.testing.http import NOT_FOUND, Http, RemoteRefusal
from pulsarium.broker.testing.linter import CaptureLinter
from pulsarium.capture.file import CaptureReader, CaptureRecord, EventKind

FAULTS, MASKS = "/lab/faults", "/lab/masks"
FIRST = "X-Pulsarium-First"  # the number of the first record in an answer; memory drops old records


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


class RemoteHandle:
    """A rule or a mask of a broker in another process. Leaving its `with` block removes it."""

    def __init__(self, http: Http, root: str, shown: Mapping[str, Any]) -> None:
        self._http = http
        self._shown = shown
        self._where = f"{root}/{shown['id']}"
        self.id = int(shown["id"])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()

    def _now(self) -> Mapping[str, Any]:
        """Return the counts of now, or the last known ones after the end."""
        try:
            self._shown = self._http.call("GET", self._where)
        except RemoteRefusal as refused:
            if refused.status != NOT_FOUND:
                raise
        return self._shown

    def remove(self) -> None:
        """Remove it from the broker. Further calls do nothing."""
        self._now()
        self._http.remove(self._where)


class RemoteRule(RemoteHandle):
    """A fault rule of a broker in another process. Leaving its `with` block removes the rule."""

    @property
    def hits(self) -> int:
        """Return how often the rule has acted. A rule that observes counts the frames."""
        return int(self._now()["hits"])

    @property
    def matched(self) -> int:
        """Return how many frames matched, also those that the rule passed over."""
        return int(self._now()["matched"])

    def wait(self, hits: int = 1, *, timeout: float = 5.0) -> None:
        """Wait until the rule has acted `hits` times in all. Raise `AssertionError` after `timeout` seconds."""
        __tracebackhide__ = True
        try:
            self._http.call("GET", f"{self._where}/wait", query={"n": hits, "timeout": timeout})
        except RemoteRefusal as refused:
            raise (AssertionError if refused.status == 408 else FaultError)(str(refused)) from None


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
            rule = RemoteRule(self._http, FAULTS, self._http.call("POST", FAULTS, asked))
        except RemoteRefusal as refused:
            raise FaultError(str(refused)) from None
        self.rules.append(rule)
        return rule

    def observe(self, command: str, **which: Unpack[Selected]) -> RemoteRule:
        """Count matching frames in the rule's `hits`, and change nothing. Raise `FaultError`."""
        return self.add("observe", command, **which)

    def of(self, namespace: str | None) -> NamespaceFaults[RemoteRule]:
        """Return the faults of one namespace, which act on its topics alone, or None for a test without its own."""
        return NamespaceFaults(self, namespace)

    def clear(self) -> None:
        """Remove the rules that were added here."""
        while self.rules:
            self.rules.pop().remove()


class RemoteMask(RemoteHandle):
    """A mask that was added to a broker in another process. Open connections keep it when it is removed."""

    def __init__(self, http: Http, mask: Mask, shown: Mapping[str, Any]) -> None:
        super().__init__(http, MASKS, shown)
        self.mask = mask

    @property
    def hits(self) -> int:
        """Return how many connections have received the mask."""
        return int(self._now()["hits"])


class RemoteMasks:
    """The masks that this test adds to a broker in another process. Other runs may have masks there too."""

    def __init__(self, http: Http) -> None:
        self._http = http
        self.worn: list[RemoteMask] = []

    def add(self, mask: Mask, **whose: Unpack[Worn]) -> RemoteMask:
        """Add a mask for connections that are opened from now on. Raise `TypeError` for an unknown argument."""
        check_names(whose, Worn)
        given = {**{name: getattr(mask, name) for name in arguments_of(Mask)}, **whose}
        asked = {json_name(name): value for name, value in given.items() if value is not None}
        asked |= {name: sorted(value) for name, value in asked.items() if isinstance(value, frozenset)}
        worn = RemoteMask(self._http, mask, self._http.call("POST", MASKS, asked))
        self.worn.append(worn)
        return worn

    def clear(self) -> None:
        """Remove the masks that were added here."""
        while self.worn:
            self.worn.pop().remove()


class RemoteCapture:
    """A capture of a broker in another process. Leaving its `with` block ends the capture, which can still be read."""

    def __init__(self, http: Http, shown: Mapping[str, Any]) -> None:
        self._http = http
        self._where = f"/lab/captures/{shown['id']}"
        self._read: list[CaptureRecord] | None = None
        self.id = int(shown["id"])
        self.path = None if shown["path"] is None else Path(shown["path"])
        """The file on the broker's machine, or None for a capture in memory."""

    def __enter__(self) -> RemoteCapture:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    @property
    def running(self) -> bool:
        """Return whether the capture is running."""
        return self._read is None

    @property
    def frames(self) -> int:
        """Return the number of frames so far."""
        if self._read is not None:
            return sum(record.kind is EventKind.FRAME for record in self._read)
        return int(self._http.call("GET", self._where)["frames"])

    def records(self) -> Sequence[CaptureRecord]:
        """Return all records that the capture has now: frames, and the start and end of connections."""
        return self._fetched() if self._read is None else self._read

    def stop(self) -> None:
        """End the capture. Its records are fetched, because the broker keeps those of few captures that ended."""
        if self._read is None:
            self._read = self._fetched()
            self._http.remove(self._where)

    def _fetched(self) -> list[CaptureRecord]:
        records, after = list[CaptureRecord](), 0
        while True:
            answer = self._http.send("GET", f"{self._where}/records", query={"after": after})
            found = list(CaptureReader().feed(answer.body))
            if not found:
                return records
            records += found
            after = int(answer.headers[FIRST]) + len(found) - 1


class RemoteCaptures:
    """The captures that this test starts on a broker in another process."""

    def __init__(self, http: Http) -> None:
        self._http = http
        self._started: list[RemoteCapture] = []

    def start(self, path: str | Path | None = None, *, keep_entry: int | None = None) -> RemoteCapture:
        """Capture every frame from now on, in memory, or to a file below the broker's --lab-dir.

        `keep_entry` bounds the stored bytes of each message; None stores all. Raise `OSError`.
        """
        asked = {"path": None if path is None else str(path), "keepEntry": keep_entry}
        try:
            shown = self._http.call("POST", "/lab/captures", asked)
        except RemoteRefusal as refused:
            raise OSError(str(refused)) from None
        capture = RemoteCapture(self._http, shown)
        self._started.append(capture)
        return capture

    @property
    def running(self) -> Sequence[RemoteCapture]:
        """Return the captures of this test that run."""
        return [each for each in self._started if each.running]


class RemoteTaps:
    """The part of a lab over HTTP that needs connections only, so that a broker and a proxy have it."""

    def __init__(self, admin_url: str) -> None:
        self._http = Http(admin_url)
        self.admin_url = self._http.url
        """The URL http://host:port."""

    @cached_property
    def faults(self) -> RemoteFaults:
        """Return the rules that this run adds. Name the topic, because other tests have connections."""
        return RemoteFaults(self._http)

    @cached_property
    def masks(self) -> RemoteMasks:
        """Return the masks that this run adds. They act on all connections that match."""
        return RemoteMasks(self._http)

    @cached_property
    def captures(self) -> RemoteCaptures:
        """Return the captures that this run starts."""
        return RemoteCaptures(self._http)

    @cached_property
    def linter(self) -> CaptureLinter:
        """Return a linter that finds mistakes of clients, in a capture of its own."""
        return CaptureLinter(self.captures)
