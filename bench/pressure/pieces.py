"""The pieces of work that are measured: one row each."""

from __future__ import annotations

from bench.pressure import admin, crowd, ids
from bench.pressure.loop import Piece

TOPICS = 20_000
SUBSCRIPTIONS = 30_000
ACKED = 400_000
REDELIVERED = 300_000
CONNECTIONS = 2_000
REQUESTS = 1_000
SEEDED = 125_000  # messages of 134 bytes

PIECES = [
    Piece("clear", "the backlog of 20,000 topics is cleared", TOPICS, admin.many_topics, admin.clear_backlog),
    Piece("unload", "a namespace of 20,000 topics is unloaded", TOPICS, admin.many_topics, admin.unload),
    Piece("metrics", "/metrics, 30,000 subscriptions", SUBSCRIPTIONS, admin.many_subscriptions, admin.metrics),
    Piece("stats", "stats of a topic, 30,000 subscriptions", SUBSCRIPTIONS, admin.many_subscriptions, admin.stats),
    Piece("internal", "internalStats, 30,000 subscriptions", SUBSCRIPTIONS, admin.many_subscriptions, admin.internal),
    Piece("page", "what the page at / shows of them", SUBSCRIPTIONS, admin.many_subscriptions, admin.page),
    Piece("ack", "one ACK of 400,000 message ids", ACKED, ids.owed, ids.acknowledge),
    Piece("redeliver", "one REDELIVER of 300,000 message ids", REDELIVERED, ids.owed, ids.redeliver),
    Piece("connects", "2,000 connections say CONNECT at once", CONNECTIONS, crowd.nothing, crowd.connects),
    Piece("requests", "1,000 HTTP requests at once, a connection each", REQUESTS, crowd.nothing, crowd.requests),
    Piece("seed", "a seed of 16 MB in JSON", SEEDED, crowd.nothing, crowd.seed),
]
