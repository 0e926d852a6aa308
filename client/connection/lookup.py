"""Look up the broker of a topic, and its number of partitions."""

from __future__ import annotations

from typing import Protocol

from pulsarium.client.connection.connection import Connection
from pulsarium.client.connection.pool import Pool
from pulsarium.client.connection.service_url import BrokerAddress, BrokerUrls
from pulsarium.client.errors import ConnectError, PulsarError, error_of
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.text import text_of


class Lookup(Protocol):
    """Requests to the brokers of a service URL, over HTTP or the binary protocol."""

    tls: bool
    """Whether connections to brokers use TLS."""

    async def connection_for(self, topic: str) -> Connection:
        """Connect to the broker that serves the topic."""
        ...

    async def connection(self) -> Connection:
        """Connect to any broker. Raise `OperationNotSupported` if the service URL is of HTTP."""
        ...

    async def partitions(self, topic: str, *, create: bool = True) -> int:
        """Return the number of partitions, or 0 for a topic that is not partitioned.

        With `create`, a missing topic is created with the partitions that its namespace gives to new topics.
        """
        ...

    async def topics(self, namespace: str, mode: pb.CommandGetTopicsOfNamespace.Mode) -> list[str]:
        """Return the topics of a namespace. Each partition counts as a topic."""
        ...

    async def aclose(self) -> None:
        """Close connections of the lookup's own, beside those of the pool."""
        ...


async def connection_to(pool: Pool, broker: BrokerUrls, *, tls: bool, proxy: BrokerAddress | None = None) -> Connection:
    """Connect to this broker, through the proxy if there is one.

    Raise `ConnectError`, and the errors of `BrokerUrls.address`.
    """
    address = broker.address(tls=tls)
    return await (pool.get(address) if proxy is None else pool.get(proxy, address))


class BinaryLookup:
    """A lookup with LOOKUP and similar commands. It begins with the address that answered last."""

    def __init__(
        self, pool: Pool, service: list[BrokerAddress], *, listener_name: str | None = None, max_redirects: int = 20
    ) -> None:
        self.tls: bool = service[0].tls
        self._pool = pool
        self._service = list(service)
        self._listener_name = listener_name
        self._max_redirects = max_redirects

    async def connection_for(self, topic: str) -> Connection:
        connection, service = await self._ask()
        authoritative = False
        for _ in range(self._max_redirects + 1):
            answer = await self._look_up(connection, topic, authoritative)
            broker = BrokerUrls(text_of(answer.brokerServiceUrl), text_of(answer.brokerServiceUrlTls))
            proxy = service if answer.proxy_through_service_url else None
            connection = await connection_to(self._pool, broker, tls=self.tls, proxy=proxy)
            if answer.response == pb.CommandLookupTopicResponse.Connect:
                return connection
            authoritative = answer.authoritative
        raise ConnectError(f"{topic}: the lookup was redirected more than {self._max_redirects} times")

    async def connection(self) -> Connection:
        return (await self._ask())[0]

    async def partitions(self, topic: str, *, create: bool = True) -> int:
        connection, _ = await self._ask()
        request = pb.CommandPartitionedTopicMetadata(
            topic=topic, request_id=connection.next_request_id(), metadata_auto_creation_enabled=create
        )
        reply = await connection.request(
            pb.BaseCommand(type=pb.BaseCommand.PARTITIONED_METADATA, partitionMetadata=request)
        )
        answer = reply.command.partitionMetadataResponse
        if answer.response == pb.CommandPartitionedTopicMetadataResponse.Failed:
            raise _nameless(answer)
        return int(answer.partitions)

    async def topics(self, namespace: str, mode: pb.CommandGetTopicsOfNamespace.Mode) -> list[str]:
        connection, _ = await self._ask()
        request = pb.CommandGetTopicsOfNamespace(
            namespace=namespace, mode=mode, request_id=connection.next_request_id()
        )
        reply = await connection.request(
            pb.BaseCommand(type=pb.BaseCommand.GET_TOPICS_OF_NAMESPACE, getTopicsOfNamespace=request)
        )
        return [text_of(topic) for topic in reply.command.getTopicsOfNamespaceResponse.topics]

    async def aclose(self) -> None:
        pass

    async def _ask(self) -> tuple[Connection, BrokerAddress]:
        """Connect to any broker of the service URL."""
        refusals: list[ConnectError] = []
        for address in list(self._service):
            try:
                return await self._pool.get(address), address
            except ConnectError as error:
                refusals.append(error)
                self._service.append(self._service.pop(0))  # begin with another one next time
        if len(refusals) == 1:
            raise refusals[0]
        kinds = {type(error) for error in refusals}
        kind = kinds.pop() if len(kinds) == 1 else ConnectError  # a transient error
        raise kind("; ".join(map(str, refusals)))

    async def _look_up(self, connection: Connection, topic: str, authoritative: bool) -> pb.CommandLookupTopicResponse:
        request = pb.CommandLookupTopic(
            topic=topic,
            request_id=connection.next_request_id(),
            authoritative=authoritative,
            advertised_listener_name=self._listener_name,
        )
        reply = await connection.request(pb.BaseCommand(type=pb.BaseCommand.LOOKUP, lookupTopic=request))
        answer = reply.command.lookupTopicResponse
        if answer.response == pb.CommandLookupTopicResponse.Failed:
            raise _nameless(answer)
        return answer


def _nameless(answer: pb.CommandLookupTopicResponse | pb.CommandPartitionedTopicMetadataResponse) -> PulsarError:
    """Return the error for a refusal without an error code."""
    return error_of(pb.UnknownError, text_of(answer.message) or "the broker refused")
