"""Which broker serves a topic, and how many partitions it has."""

from __future__ import annotations

from pulsarium.client.connection.connection import Connection
from pulsarium.client.connection.pool import Pool
from pulsarium.client.connection.service_url import Address, BrokerUrls
from pulsarium.client.errors import ConnectError
from pulsarium.proto.generated import PulsarApi_pb2 as pb

MOST_REDIRECTS = 20


class Lookup:
    """Asks the brokers of the service URL, beginning with the one that answered last."""

    def __init__(self, pool: Pool, service: list[Address]) -> None:
        self._pool = pool
        self._service = service
        self._tls = service[0].tls

    async def connection_for(self, topic: str) -> Connection:
        """A connection to the broker that serves the topic."""
        connection, service = await self._ask()
        authoritative = False
        for _ in range(MOST_REDIRECTS):
            answer = await self._look_up(connection, topic, authoritative)
            broker = BrokerUrls(str(answer.brokerServiceUrl), str(answer.brokerServiceUrlTls))
            connection = await self.connection_to(broker, service if answer.proxy_through_service_url else None)
            if answer.response == pb.CommandLookupTopicResponse.Connect:
                return connection
            authoritative = answer.authoritative
        raise ConnectError(f"{topic}: more than {MOST_REDIRECTS} brokers each named another")

    async def connection_to(self, broker: BrokerUrls, proxy: Address | None) -> Connection:
        """A connection to this broker, through the proxy if there is one."""
        address = broker.address(tls=self._tls)
        return await (self._pool.get(address) if proxy is None else self._pool.get(proxy, address))

    async def partitions(self, topic: str, *, create: bool = True) -> int:
        """How many partitions it has; 0 if it is not partitioned. `create`: as the namespace has it, if it is new."""
        connection, _ = await self._ask()
        request = pb.CommandPartitionedTopicMetadata(
            topic=topic, request_id=connection.next_request_id(), metadata_auto_creation_enabled=create
        )
        reply = await connection.request(
            pb.BaseCommand(type=pb.BaseCommand.PARTITIONED_METADATA, partitionMetadata=request)
        )
        return int(reply.command.partitionMetadataResponse.partitions)

    async def topics(self, namespace: str, mode: pb.CommandGetTopicsOfNamespace.Mode) -> list[str]:
        """The topics of a namespace, of partitioned ones the partitions."""
        connection, _ = await self._ask()
        request = pb.CommandGetTopicsOfNamespace(
            namespace=namespace, mode=mode, request_id=connection.next_request_id()
        )
        reply = await connection.request(
            pb.BaseCommand(type=pb.BaseCommand.GET_TOPICS_OF_NAMESPACE, getTopicsOfNamespace=request)
        )
        return [str(topic) for topic in reply.command.getTopicsOfNamespaceResponse.topics]

    async def _ask(self) -> tuple[Connection, Address]:
        """A connection to some broker of the service URL."""
        refusals: list[str] = []
        for address in list(self._service):
            try:
                return await self._pool.get(address), address
            except ConnectError as error:
                refusals.append(str(error))
                self._service.append(self._service.pop(0))  # the next time begin with another
        raise ConnectError("; ".join(refusals))

    @staticmethod
    async def _look_up(connection: Connection, topic: str, authoritative: bool) -> pb.CommandLookupTopicResponse:
        request = pb.CommandLookupTopic(
            topic=topic, request_id=connection.next_request_id(), authoritative=authoritative
        )
        reply = await connection.request(pb.BaseCommand(type=pb.BaseCommand.LOOKUP, lookupTopic=request))
        return reply.command.lookupTopicResponse
