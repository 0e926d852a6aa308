"""Explain why a message was not delivered, or how it was acknowledged."""

from pulsarium.broker.lab.why.answer import NotThere, Why, WhyError
from pulsarium.broker.lab.why.explain import explain

__all__ = ["NotThere", "Why", "WhyError", "explain"]
