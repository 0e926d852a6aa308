"""Reset, save, restore and seed the whole state of a cluster."""

from pulsarium.broker.lab.state.description import SeedError
from pulsarium.broker.lab.state.state import StateControl

__all__ = ["SeedError", "StateControl"]
