"""The emulator of the Pulsar broker. In tests:

with pulsarium.broker.running() as broker:
    client = pulsar.Client(broker.service_url)
"""

from typing import TYPE_CHECKING

__all__ = ["running"]

if TYPE_CHECKING:
    from pulsarium.broker.testing.running import running
else:

    def __getattr__(name: str) -> object:
        """What this package offers is imported when it is asked for: all of the broker comes with it."""
        if name == "running":
            from pulsarium.broker.testing.running import running

            return running
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
