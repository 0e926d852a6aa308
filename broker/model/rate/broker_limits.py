"""The limits of one broker, for all its topics together."""

from __future__ import annotations

from pulsarium.broker.clock import Clock
from pulsarium.broker.config.keys import Config
from pulsarium.broker.model.policy.policies import DispatchRate, PublishRate
from pulsarium.broker.model.rate.dispatch import DispatchLimiter
from pulsarium.broker.model.rate.publish import PublishLimiter


class BrokerLimits:
    """brokerPublisherThrottlingMaxMessageRate and -ByteRate, dispatchThrottlingRateInMsg and -InByte; at first none."""

    def __init__(self, clock: Clock) -> None:
        self.publish = PublishLimiter(clock)
        self.dispatch = DispatchLimiter(clock)

    def update(self, config: Config) -> None:
        """Be as the settings are."""
        self.publish.update(
            PublishRate(config.brokerPublisherThrottlingMaxMessageRate, config.brokerPublisherThrottlingMaxByteRate)
        )
        self.dispatch.update(DispatchRate(config.dispatchThrottlingRateInMsg, config.dispatchThrottlingRateInByte))
