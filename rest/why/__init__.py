"""Say why a subscription of any Pulsar broker waits, from what its admin API tells. `explain` is the function."""

from pulsarium.rest.why.explain import Explained, explain
from pulsarium.rest.why.facts import Facts

__all__ = ["Explained", "Facts", "explain"]
