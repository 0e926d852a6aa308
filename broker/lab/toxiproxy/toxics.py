"""The kinds of toxics, one class each, with the attributes of Toxiproxy."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from math import inf
from typing import Any, ClassVar, Final, Self

import trio

from pulsarium.broker.lab.toxiproxy.passage import Passage

UPSTREAM: Final = "upstream"
DOWNSTREAM: Final = "downstream"
MS: Final = 1000.0
LONGEST: Final = 2**53  # the largest whole number that JSON carries exactly


class ToxicError(ValueError):
    """Attributes that a toxic cannot have. The text says why."""


@dataclass(frozen=True)
class ToxicEffect:
    """The effect of a toxic on one direction of a connection. The docstring of a subclass is its text in the docs."""

    kind: ClassVar[str] = ""
    buffers: ClassVar[bool] = False
    """True when bytes wait in front of the toxic, because each of them is late."""
    closes: ClassVar[bool] = False
    """True when the removal of the toxic closes the connection."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= LONGEST:
                raise ToxicError(f"{name} is {value!r}; it must be a whole number, 0 or more")

    async def pipe(self, stage: Passage) -> None:
        """Pass the bytes of a connection on until they end. Canceled when the toxic changes: `stage` keeps the rest."""
        while await stage.take():
            await stage.give()


@dataclass(frozen=True)
class Latency(ToxicEffect):
    """Delay all data by `latency` ms, and by up to `jitter` ms more or less."""

    latency: int = 0
    jitter: int = 0
    kind = "latency"
    buffers = True

    async def pipe(self, stage: Passage) -> None:
        while await stage.take():
            delay = self.latency + random.uniform(-self.jitter, self.jitter)
            await trio.sleep_until(stage.arrived + delay / MS)
            await stage.give()


@dataclass(frozen=True)
class Bandwidth(ToxicEffect):
    """Pass at most `rate` kilobytes a second; with 0 none, until the toxic is removed."""

    rate: int = 0
    kind = "bandwidth"

    async def pipe(self, stage: Passage) -> None:
        due = trio.current_time()
        while await stage.take():
            if not self.rate:
                await trio.sleep_forever()
            due = max(due, trio.current_time())
            while stage.held:
                size = min(len(stage.held), self.rate * 100)  # a tenth of a second
                due += size / (self.rate * 1000)
                await trio.sleep_until(due)
                await stage.give(size)


@dataclass(frozen=True)
class SlowClose(ToxicEffect):
    """Close the connection `delay` ms after its end."""

    delay: int = 0
    kind = "slow_close"

    async def pipe(self, stage: Passage) -> None:
        await super().pipe(stage)
        await trio.sleep(self.delay / MS)


@dataclass(frozen=True)
class Timeout(ToxicEffect):
    """Drop all data, and close the connection after `timeout` ms without data. With 0, only the removal closes it."""

    timeout: int = 0
    kind = "timeout"
    closes = True

    async def pipe(self, stage: Passage) -> None:
        patience = self.timeout / MS if self.timeout else inf
        with trio.move_on_after(patience) as silence:
            while await stage.take():
                stage.drop()
                silence.deadline = trio.current_time() + patience


@dataclass(frozen=True)
class ResetPeer(ToxicEffect):
    """Reset the connection (TCP RST) `timeout` ms after the first data."""

    timeout: int = 0
    kind = "reset_peer"

    async def pipe(self, stage: Passage) -> None:
        await stage.take()
        stage.drop()
        await trio.sleep(self.timeout / MS)
        stage.reset()


@dataclass(frozen=True)
class Slicer(ToxicEffect):
    """Slice data into pieces of `average_size` bytes, `size_variation` more or less, `delay` microseconds apart."""

    average_size: int = 0
    size_variation: int = 0
    delay: int = 0
    kind = "slicer"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.average_size:
            raise ToxicError("average_size is 0; it must be 1 or more")

    async def pipe(self, stage: Passage) -> None:
        while await stage.take():
            while stage.held:
                variation = random.randint(-self.size_variation, self.size_variation)
                await stage.give(max(self.average_size + variation, 1))
                await trio.sleep(self.delay / 1e6)


@dataclass(frozen=True)
class LimitData(ToxicEffect):
    """Close the connection when `bytes` bytes have passed."""

    bytes: int = 0
    kind = "limit_data"

    async def pipe(self, stage: Passage) -> None:
        while await stage.take():
            left = self.bytes - stage.passed
            if left > 0:
                await stage.give(left)
            if stage.passed >= self.bytes:
                stage.drop()
                return


NONE: Final = ToxicEffect()
"""The effect of no toxic: all data passes."""
EFFECTS: Final[Mapping[str, type[ToxicEffect]]] = {
    effect.kind: effect for effect in (Latency, Bandwidth, SlowClose, Timeout, ResetPeer, Slicer, LimitData)
}


@dataclass(frozen=True)
class Toxic:
    """A toxic of a proxy. `toxicity` is the share of the connections that it affects."""

    name: str
    stream: str
    effect: ToxicEffect
    toxicity: float = 1.0

    def updated(self, attributes: Mapping[str, Any], toxicity: float) -> Self:
        """Return the toxic with some attributes changed. Raise `ToxicError`."""
        return replace(self, effect=replace(self.effect, **attributes), toxicity=toxicity)

    def drawn(self) -> ToxicEffect:
        """Return the effect on one connection, by chance."""
        return self.effect if random.random() < self.toxicity else NONE

    def to_json(self) -> dict[str, Any]:
        """Return the toxic as Toxiproxy shows it."""
        attributes = {each.name: getattr(self.effect, each.name) for each in fields(self.effect)}
        return {
            "attributes": attributes,
            "name": self.name,
            "type": self.effect.kind,
            "stream": self.stream,
            "toxicity": self.toxicity,
        }
