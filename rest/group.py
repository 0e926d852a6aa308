"""The base of all groups of calls: names in paths, and the methods of HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias, TypeVar, cast
from urllib.parse import quote

from pulsarium.proto.errors import InvalidTopicName
from pulsarium.proto.topic_name import NamespaceName, TopicName
from pulsarium.rest.exchange import JSON, NO_BODY, Exchange, RestReply, RestRequest

#: A topic's name, in full or short.
Topic: TypeAlias = str | TopicName
#: `tenant/namespace`.
Namespace: TypeAlias = str | NamespaceName
Query: TypeAlias = Mapping[str, object]

T = TypeVar("T")

_SAFE: Final = ":@!$&'()*+,;=~"


def segment(value: object) -> str:
    """Return a value as one segment of a path."""
    return quote(str(value), safe=_SAFE)


def twice(value: str) -> str:
    """Return a subscription as a segment, encoded twice: for the path, and for the broker's own decoding."""
    return quote(quote(value, safe=""), safe=_SAFE)


class CallGroup:
    """A group of calls. They raise the errors of the `Exchange`."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange

    def _name(self, topic: Topic) -> TopicName:
        try:
            return topic if isinstance(topic, TopicName) else TopicName.parse(topic)
        except InvalidTopicName as error:
            raise self._exchange.invalid(error) from None

    def _namespace_name(self, namespace: Namespace) -> NamespaceName:
        try:
            return namespace if isinstance(namespace, NamespaceName) else NamespaceName.parse(namespace)
        except InvalidTopicName as error:
            raise self._exchange.invalid(error) from None

    def _topic(self, topic: Topic) -> str:
        """Return `persistent/tenant/namespace/topic`."""
        return self._name(topic).rest_path

    def _namespace(self, namespace: Namespace) -> str:
        """Return `namespaces/tenant/namespace`."""
        return f"namespaces/{self._namespace_name(namespace)}"

    async def _get(self, kind: type[T], path: str, query: Query | None = None) -> T:
        """Return the JSON of an answer, which the broker declares to be a `kind`."""
        return cast(T, (await self._exchange.send(RestRequest("GET", path, query or {}))).data())

    async def _find(self, kind: type[T], path: str, query: Query | None = None) -> T | None:
        """Return the JSON of an answer, or None for a value that is not set."""
        return await self._get(kind, path, query)

    async def _get_text(self, path: str, query: Query | None = None) -> str | None:
        """Return an answer as text, or None for an empty one."""
        return text_of(await self._exchange.send(RestRequest("GET", path, query or {})))

    async def _put(
        self, path: str, body: object = NO_BODY, query: Query | None = None, *, content_type: str = JSON
    ) -> Any:
        return (await self._exchange.send(RestRequest("PUT", path, query or {}, body, content_type))).data()

    async def _post(self, path: str, body: object = NO_BODY, query: Query | None = None) -> Any:
        return (await self._exchange.send(RestRequest("POST", path, query or {}, body))).data()

    async def _delete(self, path: str, query: Query | None = None) -> RestReply:
        return await self._exchange.send(RestRequest("DELETE", path, query or {}))


def text_of(reply: RestReply) -> str | None:
    """Return an answer that is no JSON, or None for 204."""
    return None if reply.status == 204 else reply.text() or ""
