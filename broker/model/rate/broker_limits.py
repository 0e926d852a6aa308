"""Limits that many topics share: those of a broker, or of a resource group."""

from __future__ import annotations

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
