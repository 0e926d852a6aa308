"""The lab of a broker for tests in another thread. Each method runs its namesake in the broker's thread."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import timedelta
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, Generic, Never, ParamSpec, Self, TypeVar, Unpack, overload

from pulsarium.broker.lab.arguments import Selected, Which, Worn
from pulsarium.broker.lab.capture import Capture, Captures
from pulsarium.broker.lab.clock import LabClock, NamespaceClock
from pulsarium.broker.lab.faults import Action, Faults, InstalledFault
from pulsarium.broker.lab.faults.text import action_from_json
from pulsarium.broker.lab.linter import Linter
from pulsarium.broker.lab.masks import Mask, Masks, WornMask
from pulsarium.broker.lab.steering import Steered
from pulsarium.broker.server import RunningCluster
from pulsarium.broker.testing.faults import NamespaceFaults
from pulsarium.broker.testing.linter import assert_no_mistake
from pulsarium.broker.testing.thread import LoopThread
from pulsarium.capture.file import CaptureRecord

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
H = TypeVar("H", bound=AbstractContextManager[Any])


class OnLoop(Generic[T_co]):
    """A stand-in for an object of the broker's thread."""

    def __init__(self, thread: LoopThread[RunningCluster], it: T_co) -> None:
        self._thread = thread
        self._it = it


class Handle(OnLoop[H]):
    """A stand-in for an object that a test has added. Leaving its `with` block ends the object."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._thread.call(self._it.__exit__, None, None, None)


def call(method: Callable[Concatenate[T, P], R]) -> Callable[Concatenate[OnLoop[T], P], R]:
    """Run a plain method in the broker's thread."""

    @wraps(method)
    def run(proxy: OnLoop[T], /, *args: P.args, **kwargs: P.kwargs) -> R:
        return proxy._thread.call(method, proxy._it, *args, **kwargs)

    return run


def wait(method: Callable[Concatenate[T, P], Awaitable[R]]) -> Callable[Concatenate[OnLoop[T], P], R]:
    """Run a coroutine method in the broker's thread, without a time limit."""

    @wraps(method)
    def run(proxy: OnLoop[T], /, *args: P.args, **kwargs: P.kwargs) -> R:
        return proxy._thread.wait(None, method, proxy._it, *args, **kwargs)

    return run


class SharedAttribute(Generic[T, R]):
    """An attribute that any thread may read, also after the broker has ended."""

    def __init__(self, get: Callable[[T], R]) -> None:
        self._get = get

    @overload
    def __get__(self, proxy: None, owner: type) -> Self: ...
    @overload
    def __get__(self, proxy: OnLoop[T], owner: type) -> R: ...
    def __get__(self, proxy: OnLoop[T] | None, owner: type) -> R | Self:
        return self if proxy is None else self._get(proxy._it)

    def __set__(self, proxy: OnLoop[T], value: Never) -> None:
        raise AttributeError("this attribute is read-only")


class FaultRule(Handle[InstalledFault]):
    """A rule that was added. Leaving its `with` block removes the rule."""

    id = SharedAttribute[InstalledFault, int](lambda rule: rule.id)
    """The id, as REST and the command line show it."""
    hits = SharedAttribute[InstalledFault, int](lambda rule: rule.hits)
    """How often the rule has acted. A rule that observes counts the frames."""
    matched = SharedAttribute[InstalledFault, int](lambda rule: rule.matched)
    """How many frames matched, also those that the rule passed over."""
    remove = call(InstalledFault.remove)

    def __repr__(self) -> str:
        return f"<fault {self.id}: {self._it.action} of {self._it.selector.command}, {self.hits} hits>"

    def wait(self, hits: int = 1, *, timeout: float = 5.0) -> None:
        """Wait until the rule has acted `hits` times in all.

        Raise `AssertionError` after `timeout` seconds, `FaultError` when the rule never acts that often, and
        `FaultRemoved` when the rule is removed before.
        """
        __tracebackhide__ = True
        try:
            self._thread.wait(timeout, self._it.wait, hits)
        except TimeoutError:
            raise AssertionError(f"{self} after {timeout:g} s, not {hits}; {self.matched} frames matched") from None


class FaultRules(OnLoop[Faults]):
    """The faults of a broker.

    rule = broker.faults.add("drop", "SEND", topic="orders", count=2)
    ...
    rule.wait(2)
    """

    def add(self, action: Action | str | Mapping[str, object], command: str, **which: Unpack[Which]) -> FaultRule:
        """Apply `action` to matching frames of `command` from now on, by default to the first one only.

        `command` is a name of the protocol, or "*" for all. The action may have its form of REST: "drop", or
        {"kind": "delay", "seconds": 1}. Raise `FaultError` when the arguments do not fit together.
        """
        found = action if isinstance(action, Action) else action_from_json(action)
        return FaultRule(self._thread, self._thread.call(self._it.add, found, command, **which))

    def observe(self, command: str, **which: Unpack[Selected]) -> FaultRule:
        """Count matching frames in the rule's `hits`, and change nothing. Raise `FaultError`."""
        return FaultRule(self._thread, self._thread.call(self._it.observe, command, **which))

    def of(self, namespace: str | None) -> NamespaceFaults[FaultRule]:
        """Return the faults of one namespace, which act on its topics alone, or None for a test without its own."""
        return NamespaceFaults(self, namespace)

    @property
    def rules(self) -> Sequence[FaultRule]:
        """Return the rules in the order in which they are tried."""
        return [FaultRule(self._thread, rule) for rule in self._it.rules]

    clear = call(Faults.clear)


class BrokerMask(Handle[WornMask]):
    """A mask that was added. Leaving its `with` block removes the mask."""

    id = SharedAttribute[WornMask, int](lambda worn: worn.id)
    """The id, as REST and the command line show it."""
    mask = SharedAttribute[WornMask, Mask](lambda worn: worn.mask)
    hits = SharedAttribute[WornMask, int](lambda worn: worn.hits)
    """How many connections have received the mask."""
    remove = call(WornMask.remove)

    def __repr__(self) -> str:
        return f"<mask {self.id}: {self.mask}, {self.hits} connections>"


class BrokerMasks(OnLoop[Masks]):
    """The masks of a broker. A new connection receives the newest mask that matches.

    broker.masks.add(Mask(max_protocol_version=12), client_version="Pulsar-CPP*")
    """

    def add(self, mask: Mask, **whose: Unpack[Worn]) -> BrokerMask:
        """Add a mask for connections that are opened from now on. Raise `TypeError` for an unknown argument."""
        return BrokerMask(self._thread, self._thread.call(self._it.add, mask, **whose))

    @property
    def worn(self) -> Sequence[BrokerMask]:
        """Return all masks."""
        return [BrokerMask(self._thread, worn) for worn in self._it.worn]

    clear = call(Masks.clear)


C = TypeVar("C", bound=Steered)


class SteeredClock(OnLoop[C]):
    """A clock of a broker, which a test steers."""

    frozen = SharedAttribute[Steered, bool](lambda clock: clock.frozen)
    """Whether the clock is frozen."""
    now_ms = call(Steered.now_ms)
    freeze = call(Steered.freeze)
    resume = call(Steered.resume)
    run_next = wait(Steered.run_next)

    def reset(self) -> None:
        """Return to the time before the first call that steered the clock. Timers keep the time that they have left."""
        self._thread.call(self._it.reset)

    @property
    def offset_ms(self) -> int:
        """Return how far the clock is ahead of the machine's clock, in milliseconds. Below 0, the clock is behind."""
        return self._thread.call(lambda: self._it.offset_ms)

    @property
    def next_in(self) -> float | None:
        """Return the seconds until the next timer that runs once, or None when no timer waits.

        `run_next` goes there.
        """
        return self._thread.call(lambda: self._it.next_in)

    def advance(self, time: float | timedelta) -> None:
        """Advance the clock by so many seconds, and run the timers that become due, each at its own time.

        Return when all of them have run, and due messages are on their way to clients. Raise `ClockError`.
        """
        seconds = time.total_seconds() if isinstance(time, timedelta) else time
        self._thread.wait(None, self._it.advance, seconds)

    @property
    def auto_advance(self) -> bool:
        """Return whether an idle broker goes to its next timer by itself."""
        return self._it.auto_advance

    @auto_advance.setter
    def auto_advance(self, on: bool) -> None:
        self._thread.call(setattr, self._it, "auto_advance", on)


class BrokerNamespaceClock(SteeredClock[NamespaceClock]):
    """Steer the time of one namespace: of its topics, their subscriptions, and all their timers.

    broker.clock.of("public/orders").advance(timedelta(days=7))
    """

    is_own = SharedAttribute[NamespaceClock, bool](lambda clock: clock.is_own)
    """True when the namespace has its own time, and does not follow the broker's clock."""
    include = call(NamespaceClock.include)
    exclude = call(NamespaceClock.exclude)


class BrokerClock(SteeredClock[LabClock]):
    """Steer the time of a broker: its timers, and the times that it stores.

        broker.clock.freeze()
        broker.clock.advance(timedelta(days=7))

    Clients keep their own clocks. Keep-alive and the expiry of credentials follow the machine's clock, unless they are
    included.
    """

    included = SharedAttribute[LabClock, Sequence[str]](lambda clock: clock.included)
    """The names of the included timers."""
    namespaces = SharedAttribute[LabClock, Sequence[str]](lambda clock: clock.namespaces)
    """The names of the namespaces that have their own time."""
    include = call(LabClock.include)
    exclude = call(LabClock.exclude)

    def of(self, namespace: str) -> BrokerNamespaceClock:
        """Return the clock of a namespace. The first call that steers it gives the namespace its own time.

        Raise `ClockError` when the namespace does not exist.
        """
        return BrokerNamespaceClock(self._thread, self._thread.call(self._it.of, namespace))


class BrokerCapture(Handle[Capture]):
    """A capture that was started. Leaving its `with` block ends the capture, which can still be read."""

    id = SharedAttribute[Capture, int](lambda capture: capture.id)
    """The id, as REST and the command line show it."""
    path = SharedAttribute[Capture, Path | None](lambda capture: capture.path)
    """The file, or None for a capture in memory."""
    frames = SharedAttribute[Capture, int](lambda capture: capture.frames)
    """Number of frames so far."""
    running = SharedAttribute[Capture, bool](lambda capture: capture.running)
    """Whether the capture is running."""
    stop = call(Capture.stop)

    def records(self) -> Sequence[CaptureRecord]:
        """Return all records that the capture has now: frames, and the start and end of connections."""
        return self._thread.call(lambda: list(self._it.records()))


class BrokerCaptures(OnLoop[Captures]):
    """The captures of a broker.

    with broker.captures.start("lost.pulscap"):
        ...
    """

    def start(self, path: str | Path | None = None, *, keep_entry: int | None = None) -> BrokerCapture:
        """Capture every frame from now on, to a file, or in memory, which keeps the newest 64 MB.

        `keep_entry` bounds the stored bytes of each message; None stores all. Raise `OSError`.
        """
        where = None if path is None else Path(path)
        return BrokerCapture(self._thread, self._thread.call(self._it.start, where, keep_entry=keep_entry))

    @property
    def running(self) -> Sequence[BrokerCapture]:
        """Return the captures that run."""
        return [BrokerCapture(self._thread, each) for each in self._thread.call(lambda: self._it.running)]


class BrokerLinter(OnLoop[Linter]):
    """Find mistakes of clients on connections that are opened while the linter runs."""

    start = call(Linter.start)
    stop = call(Linter.stop)
    violations = call(Linter.violations)
    clear = call(Linter.clear)

    def assert_clean(self) -> None:
        """Raise `AssertionError` when a client broke a rule."""
        __tracebackhide__ = True
        assert_no_mistake(self.violations())
