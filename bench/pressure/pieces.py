"""The pieces of work that are measured: one row each."""

from __future__ import annotations

from . import admin
from .loop import Piece

TOPICS = 20_000
SUBSCRIPTIONS = 30_000

PIECES = [
    Piece("clear", "the backlog of 20,000 topics is cleared", TOPICS, admin.many_topics, admin.clear_backlog),
    Piece("unload", "a namespace of 20,000 topics is unloaded", TOPICS, admin.many_topics, admin.unload),
    Piece("metrics", "/metrics, 30,000 subscriptions", SUBSCRIPTIONS, admin.many_subscriptions, admin.metrics),
    Piece("stats", "stats of a topic, 30,000 subscriptions", SUBSCRIPTIONS, admin.many_subscriptions, admin.stats),
    Piece("internal", "internalStats, 30,000 subscriptions", SUBSCRIPTIONS, admin.many_subscriptions, admin.internal),
    Piece("page", "what the page at / shows of them", SUBSCRIPTIONS, admin.many_subscriptions, admin.page),
]
