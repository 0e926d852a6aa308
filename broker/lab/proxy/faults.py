"""The faults of a proxy: all actions work on the wire, and none in front of what may be production."""

from __future__ import annotations

from pulsarium.broker.lab.faults.faults import Faults
from pulsarium.broker.lab.faults.rule import InstalledFault
from pulsarium.broker.lab.faults.which import FaultError
from pulsarium.broker.lab.tap import Taps


class ProxyFaults(Faults):
    """The faults of a proxy. `forbidden` is the reason to refuse rules that change anything, or ""."""

    def __init__(self, taps: Taps, forbidden: str) -> None:
        super().__init__(taps)
        self._forbidden = forbidden

    def install(self, rule: InstalledFault) -> InstalledFault:
        """Let a rule act from now on. Raise `FaultError` where no rule may change anything."""
        if self._forbidden and not rule.observes:
            raise FaultError(self._forbidden)
        if rule.selector.which.get("broker") is not None:
            raise FaultError("broker: the proxy does not know the brokers by number; select the frames by topic")
        return super().install(rule)
