"""Look topics up over HTTP, for service URLs of `http://` and `https://`.

Connections go to the brokers that are found.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import anyio

from pulsarium.client.connection.connection import Connection
from pulsarium.client.connection.lookup import connection_to
from pulsarium.client.connection.pool import Pool
from pulsarium.client.connection.service_url import BrokerUrls
from pulsarium.client.connection.settings import Settings
from pulsarium.client.errors import (
    MOST_TEXT,
    AuthenticationError,
    AuthorizationError,
    ConnectError,
    InvalidTopicName,
    NotAllowedError,
    OperationNotSupported,
    PulsarError,
    ServiceUnitNotReady,
    Timeout,
    TooManyLookupRequestException,
    TopicNotFound,
    UnknownError,
)
from pulsarium.client.topics import parse
from pulsarium.proto.generated import PulsarApi_pb2 as pb

if TYPE_CHECKING:
    from pulsarium.client.admin.transport import Transport
    from pulsarium.rest.exchange import RestReply

_BY_STATUS: Mapping[int, type[PulsarError]] = MappingProxyType(
    {
        401: AuthenticationError,
        403: AuthorizationError,
        404: TopicNotFound,
        405: NotAllowedError,
        412: InvalidTopicName,
        429: TooManyLookupRequestException,
        502: ServiceUnitNotReady,
        503: ServiceUnitNotReady,
        504: ServiceUnitNotReady,
    }
)
_ANY = tuple(range(300, 600))


class HttpLookup:
    """A lookup over /lookup/v2 and /admin/v2, with the credentials of the connections."""

    def __init__(self, pool: Pool, url: str, settings: Settings) -> None:
        """Raise `InvalidUrl` for an invalid URL, and `InvalidConfiguration` for files that cannot be read."""
        self.tls: bool = url.startswith("https:")
        self._pool = pool
        self._settings = settings
        self._transport = _transport(url, settings)

    async def connection_for(self, topic: str) -> Connection:
        answer = await self._get(
            f"/lookup/v2/topic/{_path(topic)}", {"listenerName": self._settings.listener_name}, dict
        )
        broker = BrokerUrls(str(answer.get("brokerUrl") or ""), str(answer.get("brokerUrlTls") or ""))
        return await connection_to(self._pool, broker, tls=self.tls)

    async def connection(self) -> Connection:
        raise OperationNotSupported("a service URL of http:// or https:// is for lookups only: connect with pulsar://")

    async def partitions(self, topic: str, *, create: bool = True) -> int:
        answer = await self._get(f"{_path(topic)}/partitions", {"checkAllowAutoCreation": create}, dict)
        count = answer.get("partitions")
        if not isinstance(count, int) or count < 0:
            raise _broken("partitions")
        return count

    async def topics(self, namespace: str, mode: pb.CommandGetTopicsOfNamespace.Mode) -> list[str]:
        name = pb.CommandGetTopicsOfNamespace.Mode.Name(mode)
        answer = await self._get(f"namespaces/{namespace}/topics", {"mode": name}, list)
        return [str(topic) for topic in answer]

    async def aclose(self) -> None:
        await self._transport.aclose()

    async def _get(self, path: str, query: Mapping[str, object], kind: type) -> Any:
        """Return the answer's JSON, of type `kind`. Raise the error of a refusal, `ConnectError` or `Timeout`."""
        from pulsarium.client.admin.errors import AdminError
        from pulsarium.rest.exchange import RestRequest

        reply: RestReply | None = None
        try:
            with anyio.move_on_after(self._settings.operation_timeout):
                reply = await self._transport.send(RestRequest("GET", path, query, known=_ANY))
        except AdminError as error:
            cause = error.__cause__
            raise cause if isinstance(cause, PulsarError) else ConnectError(*error.args) from error
        if reply is None:
            raise Timeout(f"no answer to GET {path} in {self._settings.operation_timeout:g} s")
        if reply.status >= 300:
            raise _refusal(reply)
        data = reply.data()
        if not isinstance(data, kind):
            raise _broken(path)
        return data


def _transport(url: str, settings: Settings) -> Transport:
    # Imported here, because httpx is missing in a small install, and slow to import.
    from pulsarium.client.admin.transport import Transport

    if url.startswith("https:"):
        settings.tls.context()  # raises the error of a bad file now
    return Transport(
        url,
        authentication=settings.authentication,
        tls=settings.tls,
        connection_timeout=settings.connection_timeout,
        redirects=settings.max_lookup_redirects,
    )


def _path(topic: str) -> str:
    """Return a topic as a part of REST paths."""
    return parse(topic).rest_path


def _refusal(reply: RestReply) -> PulsarError:
    kind = _BY_STATUS.get(reply.status, UnknownError)
    data = reply.data()
    if reply.status == 401 and isinstance(data, dict) and "reason" in data:
        # Pulsar's REST API answers 401 with a "reason", its authentication filter without one.
        kind = AuthorizationError
    return kind(reply.reason.strip()[:MOST_TEXT])


def _broken(what: str) -> ConnectError:
    return ConnectError(f"the broker's answer is invalid: {what}")
