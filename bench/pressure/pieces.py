"""The pieces of work that are measured: one row each."""

from __future__ import annotations

from . import admin, ids
from .loop import Piece

TOPICS = 20_000
SUBSCRIPTIONS = 30_000
PARTITIONS = 10
ACKED = 400_000
REDELIVERED = 300_000

PIECES = [
    Piece("unload", "a namespace of 20,000 topics is unloaded", TOPICS, admin.many_topics, admin.unload),
    Piece("metrics", "/metrics, 30,000 subscriptions", SUBSCRIPTIONS, admin.many_subscriptions, admin.metrics),
    Piece("stats", "stats of a topic, 30,000 subscriptions", SUBSCRIPTIONS, admin.many_subscriptions, admin.stats),
    Piece("ack", "one ACK of 400,000 message ids", ACKED, ids.owed, ids.acknowledge),
    Piece("redeliver", "one REDELIVER of 300,000 message ids", REDELIVERED, ids.owed, ids.redeliver),
]
