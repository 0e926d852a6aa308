"""Read the recordings of real brokers: `recordings/RELEASE/stuck` and `.../healthy`, which scripts/stuck writes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pulsarium.rest.why import Explained, Facts, explain
from pulsarium.rest.why.explain import ranked
from pulsarium.rest.why.reasons import REASONS, WhyReason

FOLDER: Final = Path(__file__).parent / "recordings"
SUBSCRIPTION: Final = "billing"  # others stand beside it in a state


class Recording:
    """A state of a topic. `reason` is None for a topic that is well."""

    def __init__(self, path: Path) -> None:
        content: dict[str, Any] = json.loads(path.read_text())
        self.name = path.relative_to(FOLDER).with_suffix("").as_posix()
        self.state = path.stem
        self.reason: str | None = content["reason"]
        self.facts = [Facts(**{"stats": {}, **each}) for each in content["facts"]]

    def __str__(self) -> str:
        return self.name

    def explained(self, reasons: Mapping[str, WhyReason] = REASONS, *parts: str) -> list[Explained]:
        """Return the answers, from these parts of the facts only if any are named."""
        known = [each if not parts else _only(each, parts) for each in self.facts]
        if self.reason is not None:
            known = [each for each in known if each.subscription in ("", SUBSCRIPTION)]
        return ranked(explain(each, reasons) for each in known)


def _only(facts: Facts, parts: tuple[str, ...]) -> Facts:
    return Facts(facts.topic, facts.subscription, **{part: getattr(facts, part) for part in parts})


STUCK: Final = [Recording(path) for path in sorted(FOLDER.glob("*/stuck/*.json"))]
HEALTHY: Final = [Recording(path) for path in sorted(FOLDER.glob("*/healthy/*.json"))]
