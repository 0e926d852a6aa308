"""The whole state of a cluster: forgotten, kept in a file, taken from one, described in one."""

from pulsarium.broker.lab.state.description import SeedError
from pulsarium.broker.lab.state.state import State

__all__ = ["SeedError", "State"]
