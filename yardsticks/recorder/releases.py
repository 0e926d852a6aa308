"""The releases of Pulsar that were recorded: the scenarios of each, its recordings, and how to replay them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from . import scalable, scenarios
from .recorder import Scenario

TRANSCRIPTS = Path(__file__).resolve().parents[2] / "tests" / "transcripts"


@dataclass(frozen=True)
class Release:
    """A recorded release. `configs` names the broker.conf file of each recorded broker, by profile.

    `behavior` is the profile of ours that answers as the release does. With `steered`, scenarios move our broker's
    clock in place of waiting.
    """

    name: str
    folder: Path
    scenarios: Sequence[Scenario]
    configs: Mapping[str, str]
    behavior: str
    steered: bool = False


PULSAR_4 = Release(
    "4.2",
    TRANSCRIPTS,
    scenarios.ALL,
    {"lab": "standalone.conf", "stock": "stock.conf", "auth": "auth.conf"},
    behavior="pulsar-4.2",
)
PULSAR_5 = Release(
    "5.0",
    TRANSCRIPTS / "pulsar-5",
    scalable.ALL,
    {"lab": "standalone.conf", "slow": "standalone.conf", "off": "off.conf"},
    behavior="pulsar-5.0-m1",
    steered=True,
)
RELEASES = {release.name: release for release in (PULSAR_4, PULSAR_5)}
