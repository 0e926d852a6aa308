"""Which broker serves a topic, and how many partitions it has."""

from __future__ import annotations

from pulsarium.client.connection import Connection
from pulsarium.client.errors import ConnectError, OperationNotSupported
from pulsarium.client.pool import Pool
from pulsarium.client.service_url import Address, parse
from pulsarium.proto.generated import PulsarApi_pb2 as pb

MOST_REDIRECTS = 20


class Lookup:
    """Asks the brokers of the service URL, beginning with the one that answered last."""

    def __init__(self, pool: Pool, service: list[Address]) -> None:
        self._pool = pool
        self._service = service

    async def connection_for(self, topic: str) -> Connection:
        """A connection to the broker that serves the topic."""
        connection, service = await self._ask()
        authoritative = False
        for _ in range(MOST_REDIRECTS):
            answer = await self._look_up(connection, topic, authoritative)
            broker = _broker_of(answer)
            if answer.proxy_through_service_url:
                connection = await self._pool.get(service, broker)
            else:
                connection = await self._pool.get(broker)
            if answer.response == pb.CommandLookupTopicResponse.Connect:
                return connection
            authoritative = answer.authoritative
        raise ConnectError(f"{topic}: more than {MOST_REDIRECTS} brokers each named another")

    async def partitions(self, topic: str) -> int:
        """How many partitions it has; 0 if it is not partitioned."""
        connection, _ = await self._ask()
        request = pb.CommandPartitionedTopicMetadata(topic=topic, request_id=connection.next_request_id())
        reply = await connection.request(
            pb.BaseCommand(type=pb.BaseCommand.PARTITIONED_METADATA, partitionMetadata=request)
        )
        return int(reply.command.partitionMetadataResponse.partitions)

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


def _broker_of(answer: pb.CommandLookupTopicResponse) -> Address:
    if not answer.brokerServiceUrl:
        raise OperationNotSupported("the broker can be reached with TLS only: not built yet")
    return parse(str(answer.brokerServiceUrl))[0]
