"""Run a broker inside a test. The names are those of `pulsarium.broker.testing.names`, imported on first use."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pulsarium.broker.testing.names import *  # noqa: F403
else:
    from pulsarium.broker import on_first_use

    __getattr__ = on_first_use(__name__, "names")
