"""Run a broker inside a test, with its lab and assertions.

import pulsarium.testing

with pulsarium.testing.running() as broker: ...

The names are those of `pulsarium.broker.testing`, imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pulsarium.broker.testing.names import *  # noqa: F403
else:
    from pulsarium.broker import on_first_use

    __getattr__ = on_first_use("pulsarium.broker.testing", "names")
