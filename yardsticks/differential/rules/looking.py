"""Lookups, lists of topics, schemas, and requests about transactions, which are disabled."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.wire import Type

from ..program import SCHEMA, Program
from .values import ANY, LINKS, SELDOM, TOPIC


class Looking(Program):
    """Rules that look things up."""

    @rule(link=LINKS, topic=TOPIC, authoritative=SELDOM, listener=st.sampled_from([None, None, None, "", "other"]))
    def lookup(self, link: int, topic: int, authoritative: bool, listener: str | None) -> None:
        fields: dict[str, Any] = {} if listener is None else {"advertised_listener_name": listener}
        if authoritative:
            fields["authoritative"] = True
        self.ask(self.need_link(link), Type.LOOKUP, topic=self.topic(topic), **fields)

    @rule(link=LINKS, topic=TOPIC, creation=st.sampled_from([None, False]))
    def partitioned_metadata(self, link: int, topic: int, creation: bool | None) -> None:
        fields: dict[str, Any] = {} if creation is None else {"metadata_auto_creation_enabled": creation}
        self.ask(self.need_link(link), Type.PARTITIONED_METADATA, topic=self.topic(topic), **fields)

    @rule(link=LINKS, mode=st.integers(0, 2))
    def topics_of_namespace(self, link: int, mode: int) -> None:
        pattern = f"persistent://{self.namespace}/{self.stem}.*"
        fields: dict[str, Any] = {"namespace": self.namespace, "mode": mode, "topics_pattern": pattern}
        self.ask(self.need_link(link), Type.GET_TOPICS_OF_NAMESPACE, **fields)

    @rule(link=LINKS, ident=st.integers(0, 1), close=st.booleans())
    def watch(self, link: int, ident: int, close: bool) -> None:
        if close and self.links:
            self.ask(self.some_link(link), Type.WATCH_TOPIC_LIST_CLOSE, watcher_id=ident)
            return
        pattern = f"persistent://{self.namespace}/{self.stem}.*"
        fields: dict[str, Any] = {"namespace": self.namespace, "topics_pattern": pattern}
        self.ask(self.need_link(link), Type.WATCH_TOPIC_LIST, watcher_id=ident, **fields)

    @rule(
        link=LINKS,
        topic=TOPIC,
        version=st.sampled_from([None, None, b"\0" * 8, b"\0" * 7 + b"\1"]),
        create=st.booleans(),
    )
    def schema(self, link: int, topic: int, version: bytes | None, create: bool) -> None:
        if create:
            self._create_schema(link)
            return
        fields: dict[str, Any] = {} if version is None else {"schema_version": version}
        self.ask(self.need_link(link), Type.GET_SCHEMA, topic=self.topic(topic), **fields)

    def _create_schema(self, link: int) -> None:
        data = b'{"type":"record","name":"R","fields":[{"name":"a","type":"string"}]}'
        schema = {"name": "R", "schema_data": data, "type": pb.Schema.Json}
        topic = self.topic(SCHEMA)
        self.call("PUT", SCHEMA, "")
        self.ask(self.need_link(link), Type.GET_OR_CREATE_SCHEMA, topic=topic, schema=schema)
        self.ask(self.need_link(link), Type.GET_SCHEMA, topic=topic)

    @precondition(lambda self: self.links)
    @rule(which=ANY, first=st.integers(0, 6))
    def transactions(self, which: int, first: int) -> None:
        """Send some requests about transactions."""
        link, topic = self.some_link(which), self.topic(0)
        ident = {"txnid_least_bits": 1, "txnid_most_bits": 0}
        subscription = {"topic": topic, "subscription": "s"}
        requests: list[tuple[int, dict[str, Any]]] = [
            (Type.TC_CLIENT_CONNECT_REQUEST, {"tc_id": 0}),
            (Type.NEW_TXN, {"txn_ttl_millis": 1000, "tc_id": 0}),
            (Type.ADD_PARTITION_TO_TXN, {**ident, "partitions": [topic]}),
            (Type.ADD_SUBSCRIPTION_TO_TXN, {**ident, "subscription": [subscription]}),
            (Type.END_TXN, {**ident, "txn_action": 1}),
            (Type.END_TXN_ON_PARTITION, {**ident, "topic": topic, "txn_action": 1}),
            (Type.END_TXN_ON_SUBSCRIPTION, {**ident, "subscription": subscription, "txn_action": 1}),
        ]
        for request, fields in [*requests, *requests][first : first + 4]:
            self.ask(link, request, **fields)
