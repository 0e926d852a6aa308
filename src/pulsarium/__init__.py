"""Pulsarium: an emulator of the Apache Pulsar broker.

import pulsarium

with pulsarium.testing.running() as broker: ...
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pulsarium import broker as broker
    from pulsarium import client as client
    from pulsarium import testing as testing
else:

    def __getattr__(name: str) -> object:
        """Import a part when it is asked for: the client needs packages of its extra."""
        if name in ("broker", "client", "testing"):
            return import_module(f"{__name__}.{name}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
