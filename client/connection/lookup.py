"""Which broker serves a topic, and how many partitions it has."""

from __future__ import annotations

from typing import Protocol

from pulsarium.client.connection.connection import Connection
from pulsarium.client.connection.pool import Pool
from pulsarium.client.connection.service_url import Address, BrokerUrls
from pulsarium.client.errors import ConnectError, PulsarError, error_of
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.text import text_of


class Lookup(Protocol):
    """Asks the brokers of a service URL, over one protocol or another."""

    tls: bool
    """Whether connections to brokers are to be encrypted."""

    async def connection_for(self, topic: str) -> Connection:
        """A connection to the broker that serves the topic."""
        ...

    async def connection(self) -> Connection:
        """A connection to some broker; OperationNotSupported if the service URL is none of such connections."""
        ...

    async def partitions(self, topic: str, *, create: bool = True) -> int:
        """How many partitions it has; 0 if it is not partitioned. `create`: as the namespace has it, if it is new."""
        ...

    async def topics(self, namespace: str, mode: pb.CommandGetTopicsOfNamespace.Mode) -> list[str]:
        """The topics of a namespace, of partitioned ones the partitions."""
        ...

    async def aclose(self) -> None:
        """Close what the pool does not."""
        ...


async def connection_to(pool: Pool, broker: BrokerUrls, *, tls: bool, proxy: Address | None = None) -> Connection:
    """A connection to this broker, through the proxy if there is one. Raises as `BrokerUrls.address`, ConnectError."""
    address = broker.address(tls=tls)
    return await (pool.get(address) if proxy is None else pool.get(proxy, address))


class BinaryLookup:
    """With LOOKUP and its like; begins with the address that answered last."""

    def __init__(
        self, pool: Pool, service: list[Address], *, listener_name: str | None = None, max_redirects: int = 20
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
        raise ConnectError(f"{topic}: more than {self._max_redirects} brokers each named another")

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

    async def _ask(self) -> tuple[Connection, Address]:
        """A connection to some broker of the service URL."""
        refusals: list[ConnectError] = []
        for address in list(self._service):
            try:
                return await self._pool.get(address), address
            except ConnectError as error:
                refusals.append(error)
                self._service.append(self._service.pop(0))  # the next time begin with another
        if len(refusals) == 1:
            raise refusals[0]
        kinds = {type(error) for error in refusals}
        kind = kinds.pop() if len(kinds) == 1 else ConnectError  # which may pass
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
    """For a refusal without an error."""
    return error_of(pb.UnknownError, text_of(answer.message) or "the broker refused")
