"""The recordings: whose they are, where they are, and how to replay them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_HERE: Final = Path(__file__).parent


@dataclass(frozen=True)
class Release:
    """Recordings of a release. `configs` names the broker.conf file of each recorded broker.

    `behavior` is the profile of ours that answers as the release does. `scalable` tells the scenarios of scalable
    topics, in which our broker's clock is moved in place of waiting. A release that answers a scenario as its `base`
    does has no recording of its own, and the broker.conf files of the base. Its answers lack the `absent_flags` of
    CONNECTED. Scenarios beyond number `last` are about what the release does not have. Scenarios that are `left_out`
    end otherwise than those of the base, by chance or in ways that no profile follows (docs/differences.md).
    """

    name: str
    configs: Mapping[str, str]
    behavior: str
    scalable: bool = False
    base: Release | None = None
    absent_flags: frozenset[str] = frozenset()
    last: int = 999
    left_out: frozenset[int] = frozenset()

    @property
    def folder(self) -> Path:
        """Return the folder of its own recordings, their mask and its broker.conf files."""
        return _HERE / self.name

    def config(self, name: str) -> Path:
        """Return the broker.conf file of a recorded broker."""
        return self.base.config(name) if self.base else self.folder / self.configs[name]

    def recording(self, name: str) -> Path:
        """Return the recording of a scenario: its own, or else that of its base."""
        own = self.folder / f"{name}.jsonl"
        return own if self.base is None or own.exists() else self.base.recording(name)

    def paths(self) -> Mapping[str, Path]:
        """Return the recording of each scenario by its name, those of the base too, in the order of names."""
        own = {path.stem: path for path in self.folder.glob("[0-9]*.jsonl")}
        found = {**(self.base.paths() if self.base else {}), **own}
        return {name: path for name, path in sorted(found.items()) if self.has(int(name[:3]))}

    def has(self, number: int) -> bool:
        """Return whether a scenario is recorded of the release, by its number."""
        return number <= self.last and number not in self.left_out


_CLASSIC: Final = {"lab": "standalone.conf", "stock": "stock.conf", "auth": "auth.conf"}
_SCALABLE: Final = {"lab": "standalone.conf", "slow": "standalone.conf", "off": "off.conf"}
PULSAR_4: Final = Release("4.2.4", _CLASSIC, behavior="pulsar-4.2")
PULSAR_4_0: Final = Release(
    "4.0.7",
    _CLASSIC,
    behavior="pulsar-4.0",
    base=PULSAR_4,
    absent_flags=frozenset({"supports_topic_watcher_reconcile"}),
    left_out=frozenset({8, 27, 88, 137}),
)
PULSAR_3_0: Final = Release(
    "3.0.7",
    _CLASSIC,
    behavior="pulsar-3.0",
    base=PULSAR_4_0,
    absent_flags=PULSAR_4_0.absent_flags | {"supports_repl_dedup_by_lid_and_eid"},
    left_out=frozenset({40, 66, 68, 78, 103, 105, 106, 107, 109, 121, 135, 145}),
)
PULSAR_5: Final = Release("5.0.1", _CLASSIC, behavior="pulsar-5.0", base=PULSAR_4)
PULSAR_5_SCALABLE: Final = Release("5.0.1-scalable", _SCALABLE, behavior="pulsar-5.0", scalable=True)
PULSAR_5_M1: Final = Release("5.0.0-M1-scalable", _SCALABLE, behavior="pulsar-5.0-m1", scalable=True, last=42)
RELEASES: Final = {
    release.name: release for release in (PULSAR_4, PULSAR_5, PULSAR_5_SCALABLE, PULSAR_5_M1, PULSAR_4_0, PULSAR_3_0)
}
