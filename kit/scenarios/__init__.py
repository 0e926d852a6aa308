"""The scenarios of the conformance kit, by subject."""

from pulsarium.kit.scenarios import (
    checkpoints,
    failures,
    layouts,
    lifetime,
    ordering,
    queues,
    routing,
    streams,
    transactions,
)

SUBJECTS = (routing, ordering, layouts, queues, streams, checkpoints, transactions, failures, lifetime)
"""Imported for their scenarios."""
