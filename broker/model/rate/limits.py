"""Limits that many topics share: those of a broker, or of a resource group."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from pulsarium.broker.clock import Clock
from pulsarium.broker.config.keys import Config
from pulsarium.broker.model.policy.policies import DispatchRate, PublishRate
from pulsarium.broker.model.rate.dispatch import DispatchLimiter
from pulsarium.broker.model.rate.publish import PublishLimiter


class Limits:
    """Limit how fast messages come in and go out; without a rate at first."""

    def __init__(self, clock: Clock) -> None:
        self.publish = PublishLimiter(clock)
        self.dispatch = DispatchLimiter(clock)


class BrokerLimits(Limits):
    """brokerPublisherThrottlingMaxMessageRate and -ByteRate, dispatchThrottlingRateInMsg and -InByte."""

    def update(self, config: Config) -> None:
        """Be as the settings are."""
        self.publish.update(
            PublishRate(config.brokerPublisherThrottlingMaxMessageRate, config.brokerPublisherThrottlingMaxByteRate)
        )
        self.dispatch.update(DispatchRate(config.dispatchThrottlingRateInMsg, config.dispatchThrottlingRateInByte))


FOLDER = "/admin/resourcegroups"


class Records(Protocol):
    """Read groups from the metadata."""

    def get(self, folder: str, *names: str) -> Any: ...


class ResourceGroups:
    """The limits of each group that topics belong to.

    Topics of all brokers take from one bucket, so that the rate is the group's wherever they are; brokers of Pulsar get
    there by telling each other what they use.
    """

    def __init__(self, clock: Clock, records: Records, *, limit_dispatch: bool) -> None:
        self._clock = clock
        self._records = records
        self._limit_dispatch = limit_dispatch
        self._no_limits = Limits(clock)
        self._limits: dict[str, Limits] = {}

    def limits_of(self, name: str) -> Limits:
        """Return the limits of a group, as they are now; "" and a group that is not there have none."""
        group: Mapping[str, Any] | None = self._records.get(FOLDER, name) if name else None
        if group is None:
            return self._no_limits
        if name not in self._limits:
            self._limits[name] = Limits(self._clock)
        limits = self._limits[name]
        limits.publish.update(PublishRate(group.get("publishRateInMsgs") or 0, group.get("publishRateInBytes") or 0))
        if self._limit_dispatch:
            rate = DispatchRate(group.get("dispatchRateInMsgs") or 0, group.get("dispatchRateInBytes") or 0)
            limits.dispatch.update(rate)
        return limits
