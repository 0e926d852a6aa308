"""Scenarios of scalable topics (PIP-460 and its followers)."""

from typing import Final

SPECIFICATION: Final = "1.0"
"""Version of Pulsar's specification of scalable topics (PIP-494) whose sections the scenarios name as sources.

Conformance, data model and error model were read as stable texts, the other documents in their last known draft.
"""
