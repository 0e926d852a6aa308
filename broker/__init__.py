"""The emulator of the Pulsar broker.

In tests:

with pulsarium.broker.running() as broker:
    client = pulsar.Client(broker.service_url)
"""

from typing import TYPE_CHECKING

__all__ = ["running"]

if TYPE_CHECKING:
    from pulsarium.broker.testing.running import running
else:

    def __getattr__(name: str) -> object:
        """Import `running` only on first use, because the whole broker comes with it."""
        if name == "running":
            from pulsarium.broker.testing.running import running

            return running
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
