"""The lab of a broker, for tests that run in another thread: each method does there what it does on the loop."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import timedelta
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, Generic, Never, ParamSpec, Self, TypeVar, Unpack, overload

from pulsarium.broker.lab.arguments import Selected, Which, Worn
from pulsarium.broker.lab.capture import Capture, Captures
from pulsarium.broker.lab.clock import LabClock
from pulsarium.broker.lab.faults import Action, Faults, Rule
from pulsarium.broker.lab.faults.text import action_from_json
from pulsarium.broker.lab.linter import Linter
from pulsarium.broker.lab.masks import Mask, Masks, WornMask
from pulsarium.broker.server import RunningCluster
from pulsarium.broker.testing.thread import LoopThread
from pulsarium.capture.file import Record
from pulsarium.capture.lint.checker import Finding

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
H = TypeVar("H", bound=AbstractContextManager[Any])


class OnLoop(Generic[T]):
    """Stands for something that belongs to the broker's thread."""

    def __init__(self, thread: LoopThread[RunningCluster], it: T) -> None:
        self._thread = thread
        self._it = it


class Handle(OnLoop[H]):
    """Stands for something that a test has added. Leaving its `with` block ends it."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._thread.call(self._it.__exit__, None, None, None)


def call(method: Callable[Concatenate[T, P], R]) -> Callable[Concatenate[OnLoop[T], P], R]:
    """Run a plain method on the loop."""

    @wraps(method)
    def run(proxy: OnLoop[T], /, *args: P.args, **kwargs: P.kwargs) -> R:
        return proxy._thread.call(method, proxy._it, *args, **kwargs)

    return run


def wait(method: Callable[Concatenate[T, P], Awaitable[R]]) -> Callable[Concatenate[OnLoop[T], P], R]:
    """Run a coroutine method on the loop, however long that takes."""

    @wraps(method)
    def run(proxy: OnLoop[T], /, *args: P.args, **kwargs: P.kwargs) -> R:
        return proxy._thread.wait(None, method, proxy._it, *args, **kwargs)

    return run


class Look(Generic[T, R]):
    """An attribute that may be read from any thread, also after the broker has ended."""

    def __init__(self, get: Callable[[T], R]) -> None:
        self._get = get

    @overload
    def __get__(self, proxy: None, owner: type) -> Self: ...
    @overload
    def __get__(self, proxy: OnLoop[T], owner: type) -> R: ...
    def __get__(self, proxy: OnLoop[T] | None, owner: type) -> R | Self:
        return self if proxy is None else self._get(proxy._it)

    def __set__(self, proxy: OnLoop[T], value: Never) -> None:
        raise AttributeError("this can be read only")


class FaultRule(Handle[Rule]):
    """A rule that was added. Leaving its `with` block removes it."""

    id = Look[Rule, int](lambda rule: rule.id)
    """As REST and the command line name it."""
    hits = Look[Rule, int](lambda rule: rule.hits)
    """How often it has acted; one that observes: how many frames it has seen."""
    matched = Look[Rule, int](lambda rule: rule.matched)
    """How many frames it selected, whether or not it was their turn."""
    remove = call(Rule.remove)

    def __repr__(self) -> str:
        return f"<fault {self.id}: {self._it.action} of {self._it.selector.command}, {self.hits} hits>"

    def wait(self, hits: int = 1, *, timeout: float = 5.0) -> None:
        """Wait until it has hit so often in all.

        Raises AssertionError when it has not after `timeout` seconds, FaultError for more often than it ever will,
        FaultRemoved when it is removed before.
        """
        __tracebackhide__ = True
        try:
            self._thread.wait(timeout, self._it.wait, hits)
        except TimeoutError:
            raise AssertionError(f"{self} after {timeout:g} s, not {hits}; {self.matched} frames fitted") from None


class FaultRules(OnLoop[Faults]):
    """The faults of a broker.

    rule = broker.faults.add("drop", "SEND", topic="orders", count=2)
    ...
    rule.wait(2)
    """

    def add(self, action: Action | str | Mapping[str, object], command: str, **which: Unpack[Which]) -> FaultRule:
        """From now on `action` happens to frames of `command` (a name of the protocol, "*" for all), by default to the
        first one only. Raises FaultError for what makes no sense.

        The action may be given as in REST: "drop", {"kind": "delay", "seconds": 1}.
        """
        found = action if isinstance(action, Action) else action_from_json(action)
        return FaultRule(self._thread, self._thread.call(self._it.add, found, command, **which))

    def observe(self, command: str, **which: Unpack[Selected]) -> FaultRule:
        """Count frames in the rule's `hits`, and do nothing to them. Raises FaultError."""
        return FaultRule(self._thread, self._thread.call(self._it.observe, command, **which))

    @property
    def rules(self) -> Sequence[FaultRule]:
        """Those that there are, in the order in which they are asked."""
        return [FaultRule(self._thread, rule) for rule in self._it.rules]

    clear = call(Faults.clear)


class BrokerMask(Handle[WornMask]):
    """A mask that was added. Leaving its `with` block removes it."""

    id = Look[WornMask, int](lambda worn: worn.id)
    """As REST and the command line name it."""
    mask = Look[WornMask, Mask](lambda worn: worn.mask)
    hits = Look[WornMask, int](lambda worn: worn.hits)
    """How many connections it was given to."""
    remove = call(WornMask.remove)

    def __repr__(self) -> str:
        return f"<mask {self.id}: {self.mask}, {self.hits} connections>"


class BrokerMasks(OnLoop[Masks]):
    """The masks of a broker: of those that fit, a new connection gets the one that was added last.

    broker.masks.add(Mask(max_protocol_version=12), client_version="Pulsar-CPP*")
    """

    def add(self, mask: Mask, **whose: Unpack[Worn]) -> BrokerMask:
        """Connections that are opened from now on wear it."""
        return BrokerMask(self._thread, self._thread.call(self._it.add, mask, **whose))

    @property
    def worn(self) -> Sequence[BrokerMask]:
        """Those that there are."""
        return [BrokerMask(self._thread, worn) for worn in self._it.worn]

    clear = call(Masks.clear)


class BrokerClock(OnLoop[LabClock]):
    """Steers the time of a broker: that of everything it waits for, and of what it writes down.

        broker.clock.freeze()
        broker.clock.advance(timedelta(days=7))

    The clocks of clients go on as they are; so do keep-alive and the expiry of credentials, unless they are included.
    """

    frozen = Look[LabClock, bool](lambda clock: clock.frozen)
    """Whether time stands still."""
    included = Look[LabClock, Sequence[str]](lambda clock: clock.included)
    """What else obeys, by name."""
    now_ms = call(LabClock.now_ms)
    freeze = call(LabClock.freeze)
    resume = call(LabClock.resume)
    reset = call(LabClock.reset)
    include = call(LabClock.include)
    exclude = call(LabClock.exclude)
    run_next = wait(LabClock.run_next)

    @property
    def offset_ms(self) -> int:
        """How far it is ahead of the machine's clock, in milliseconds; below 0: behind."""
        return self._thread.call(lambda: self._it.offset_ms)

    @property
    def next_in(self) -> float | None:
        """Seconds until the next timer that runs once: what `run_next` goes to. None: nothing waits."""
        return self._thread.call(lambda: self._it.next_in)

    def advance(self, time: float | timedelta) -> None:
        """Be later by so many seconds, and run what comes due on the way, in its order. Returns when all of it is done,
        and what became due is on its way to clients. Raises ClockError."""
        seconds = time.total_seconds() if isinstance(time, timedelta) else time
        self._thread.wait(None, self._it.advance, seconds)

    @property
    def auto_advance(self) -> bool:
        """Whether time goes to the next timer by itself as soon as the broker has nothing to do."""
        return self._it.auto_advance

    @auto_advance.setter
    def auto_advance(self, on: bool) -> None:
        self._thread.call(setattr, self._it, "auto_advance", on)


class BrokerCapture(Handle[Capture]):
    """A capture that was started. Leaving its `with` block ends it; it can still be read."""

    id = Look[Capture, int](lambda capture: capture.id)
    """As REST and the command line name it."""
    path = Look[Capture, Path | None](lambda capture: capture.path)
    """None: it is in memory."""
    frames = Look[Capture, int](lambda capture: capture.frames)
    """So far."""
    running = Look[Capture, bool](lambda capture: capture.running)
    """Whether it goes on."""
    stop = call(Capture.stop)

    def records(self) -> Sequence[Record]:
        """All that it holds now: frames, and where connections begin and end."""
        return self._thread.call(lambda: list(self._it.records()))


class BrokerCaptures(OnLoop[Captures]):
    """The captures of a broker.

    with broker.captures.start("lost.capture"):
        ...
    """

    def start(self, path: str | Path | None = None, *, keep_entry: int | None = None) -> BrokerCapture:
        """Capture every frame from now on, to a file, or in memory, which keeps the newest of it.

        `keep_entry`: so many bytes of each message; None: all. Raises OSError.
        """
        where = None if path is None else Path(path)
        return BrokerCapture(self._thread, self._thread.call(self._it.start, where, keep_entry=keep_entry))

    @property
    def running(self) -> Sequence[BrokerCapture]:
        """Those that were not stopped."""
        return [BrokerCapture(self._thread, each) for each in self._thread.call(lambda: self._it.running)]


class BrokerLinter(OnLoop[Linter]):
    """Says what clients do wrong on connections that are opened while it runs."""

    start = call(Linter.start)
    stop = call(Linter.stop)
    violations = call(Linter.violations)
    clear = call(Linter.clear)

    def assert_clean(self) -> None:
        """No rule was broken by a client. Raises AssertionError."""
        __tracebackhide__ = True
        found: list[Finding] = self.violations()
        wrong = [str(each) for each in found if each.side == "client"]
        if wrong:
            raise AssertionError("\n".join(["a client broke rules of the protocol:", *wrong]))
