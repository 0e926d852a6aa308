"""The client's public members are those that applications use."""

from __future__ import annotations

from pulsarium.client import Client


def test_a_client_shows_only_what_applications_use() -> None:
    assert {name for name in vars(Client) if not name.startswith("_")} == {
        "aclose",
        "admin",
        "begin_transaction",
        "create_producer",
        "create_raw_reader",
        "create_reader",
        "create_table_view",
        "get_schema",
        "get_topic_partitions",
        "get_topics",
        "subscribe",
        "transaction",
    }
