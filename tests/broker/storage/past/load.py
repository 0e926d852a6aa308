"""Load for a broker of any version, by the official client and by REST: some data of each kind that a store keeps.

Features that a version does not have yet are left out. The last message of each topic is END, which no consumer
acknowledges.
"""

from __future__ import annotations

import argparse
import json
import time
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import anyio
import pulsar
from pulsar.schema import JsonSchema, Record, String

from pulsarium.client import InitialPosition, connect

NAMESPACE = "public/default"
END = b"end"
LONG = 10 * 365 * 86400  # timeout of transactions, in seconds; one of them stays open
SETTLED = 1.0  # seconds until acknowledgements without a receipt are stored


class V1(Record):  # type: ignore[misc]
    """The first version of a schema."""

    name = String()


class V2(Record):  # type: ignore[misc]
    """The second version of the schema."""

    name = String()
    note = String(default="")


def call(admin: str, method: str, path: str, body: object = None) -> object:
    """Call the admin API, and return the answer. Return None if the broker refuses the call."""
    data = None if body is None else json.dumps(body).encode()
    request = Request(f"{admin}/admin/{path}", data, {"Content-Type": "application/json"}, method=method)
    try:
        with urlopen(request, timeout=30) as answer:
            text = answer.read()
    except HTTPError as error:
        error.close()
        return None
    try:
        return json.loads(text) if text else ""
    except ValueError:
        return text.decode()


class Load:
    """Publish and acknowledge on topics of each kind."""

    def __init__(self, client: pulsar.Client, admin: str) -> None:
        self._client = client
        self._admin = admin

    def subscribe(self, topic: str, name: str, **options: object) -> pulsar.Consumer:
        return self._client.subscribe(
            topic, name, initial_position=pulsar.InitialPosition.Earliest, batch_index_ack_enabled=True, **options
        )

    def send(self, topic: str, contents: list[bytes], *, end: bool = True, **options: object) -> None:
        producer = self._client.create_producer(topic, **options)
        for number, content in enumerate(contents):
            producer.send_async(
                content,
                None,
                partition_key=f"key-{number % 3}",
                properties={"n": str(number)},
                event_timestamp=1_000_000 + number,
            )
        producer.flush()
        producer.close()
        if end:
            producer = self._client.create_producer(topic)
            producer.send(END, partition_key="end")
            producer.close()

    def ranges(self) -> None:
        """Publish entries of one message each, and acknowledge some individually and some cumulatively."""
        every_third, cumulative = self.subscribe("plain", "every-third"), self.subscribe("plain", "cumulative")
        self.subscribe("plain", "nothing").close()
        self.send("plain", [b"plain %d " % number * 3 for number in range(60)])
        for number in range(61):
            message = every_third.receive(10_000)
            if number % 3 and number < 60:
                every_third.acknowledge(message)
            other = cumulative.receive(10_000)
            if number == 20:
                cumulative.acknowledge_cumulative(other)
        time.sleep(SETTLED)
        every_third.close()
        cumulative.close()
        call(self._admin, "PUT", f"v2/persistent/{NAMESPACE}/plain/subscription/nothing/properties", {"who": "me"})

    def batches(self) -> None:
        """Publish compressed batches of ten messages, and acknowledge parts of the batches."""
        some, first = self.subscribe("batched", "some-of-each"), self.subscribe("batched", "part-of-first")
        self.send(
            "batched",
            [b"batched %d" % number for number in range(50)],
            compression_type=pulsar.CompressionType.LZ4,
            batching_enabled=True,
            batching_max_messages=10,
            batching_max_publish_delay_ms=10_000,
        )
        for number in range(51):
            message = some.receive(10_000)
            if number % 10 in (1, 2, 7) or number // 10 == 3:
                some.acknowledge(message)
            other = first.receive(10_000)
            if number < 4:
                first.acknowledge(other)
        time.sleep(SETTLED)
        some.close()
        first.close()

    def chunks(self) -> None:
        """Publish a message in several chunks, and a delayed message."""
        content = b"0123456789" * 600_000  # more than the largest message
        self.send("chunked", [content], chunking_enabled=True)
        shared = self.subscribe("delayed", "shared", consumer_type=pulsar.ConsumerType.Shared)
        producer = self._client.create_producer("delayed")
        producer.send(b"much later", deliver_at=4_000_000_000_000)
        producer.send(END)
        producer.close()
        shared.close()

    def partitions(self) -> None:
        """Publish to a partitioned topic, and acknowledge half of the messages."""
        call(self._admin, "PUT", f"v2/persistent/{NAMESPACE}/parted/partitions", 2)
        consumer = self.subscribe("parted", "half")
        self.send("parted", [b"parted %d" % number for number in range(20)], end=False)
        for number in range(20):
            message = consumer.receive(10_000)
            if number % 2:
                consumer.acknowledge(message)
        time.sleep(SETTLED)
        consumer.close()
        for partition in (0, 1):
            self.send(f"parted-partition-{partition}", [])

    def schemas(self) -> None:
        """Create two versions of one schema, and delete another schema."""
        path = f"v2/namespaces/{NAMESPACE}/schemaCompatibilityStrategy"
        call(self._admin, "PUT", path, "ALWAYS_COMPATIBLE")
        for record in (V1, V2):
            producer = self._client.create_producer("typed", schema=JsonSchema(record))
            producer.send(record(name="Ada"))
            producer.close()
        self._client.create_producer("untyped", schema=JsonSchema(V1)).close()
        call(self._admin, "DELETE", f"v2/schemas/{NAMESPACE}/untyped/schema")

    def deduplication(self) -> None:
        """Publish with sequence ids. Deduplication keeps some in a snapshot, and some only in the entries behind it."""
        call(self._admin, "POST", f"v2/namespaces/{NAMESPACE}/deduplication", True)
        producer = self._client.create_producer("once", producer_name="counter")
        for number in range(30):
            producer.send(b"once %d" % number, sequence_id=5 * number)
        producer.close()

    def compaction(self) -> None:
        """Compact a topic, and publish another entry behind the compacted ones."""
        self.send("compact", [b"compact %d" % number for number in range(30)], end=False)
        path = f"v2/persistent/{NAMESPACE}/compact"
        if call(self._admin, "PUT", f"{path}/compaction") is None:
            call(self._admin, "POST", f"{path}/compactionThreshold", 1)
        for _ in range(50):
            found = call(self._admin, "GET", f"{path}/internalStats")
            if isinstance(found, dict) and found.get("compactedLedger", {}).get("ledgerId", -1) >= 0:
                break
            time.sleep(0.1)
        self.send("compact", [b"behind"])

    def policies(self) -> None:
        """Set tenants, namespaces, grants, policies, properties, and settings that no broker acts upon."""
        retention = {"retentionTimeInMinutes": -1, "retentionSizeInMB": 9}
        tenant = {"adminRoles": ["boss"], "allowedClusters": ["standalone"]}
        for method, path, body in (
            ("PUT", "v2/tenants/acme", tenant),
            ("PUT", "v2/namespaces/acme/parts", {"bundles": {"numBundles": 2}}),
            ("POST", "v2/namespaces/acme/parts/permissions/role", ["produce", "consume"]),
            ("POST", f"v2/namespaces/{NAMESPACE}/retention", {"retentionTimeInMinutes": -1, "retentionSizeInMB": -1}),
            ("POST", f"v2/namespaces/{NAMESPACE}/messageTTL", 0),
            ("POST", "v2/namespaces/acme/parts/backlogQuota", {"limitSize": 1 << 30, "policy": "producer_exception"}),
            ("POST", f"v2/persistent/{NAMESPACE}/plain/maxConsumers", 77),
            ("POST", f"v2/persistent/{NAMESPACE}/plain/retention", retention),
            ("PUT", f"v2/persistent/{NAMESPACE}/plain/properties", {"colour": "blue"}),
            ("PUT", "v2/resourcegroups/few", {"publishRateInMsgs": 10}),
            ("PUT", "v2/clusters/other", {"serviceUrl": "http://other:8080"}),
            ("POST", f"v2/persistent/{NAMESPACE}/gone/terminate", None),
        ):
            call(self._admin, method, path, body)

    def deleted(self) -> None:
        """Delete a topic, and terminate another one."""
        self.send("away", [bytes(2000)] * 50)
        call(self._admin, "DELETE", f"v2/persistent/{NAMESPACE}/away?force=true")
        self.send("terminated", [b"one", b"two"])
        call(self._admin, "POST", f"v2/persistent/{NAMESPACE}/terminated/terminate")


async def transactions(service_url: str) -> None:
    """Commit one transaction, abort one, and leave one open that has published and acknowledged."""
    async with (
        connect(service_url) as client,
        client.create_producer("bought") as producer,
        client.subscribe("bought", "billing", initial_position=InitialPosition.Earliest) as consumer,
    ):
        for number in range(4):
            await producer.send(b"before %d" % number)
        done = await client.begin_transaction(timeout=LONG)
        await producer.send(b"committed", txn=done)
        await consumer.acknowledge(await consumer.receive(), txn=done)
        await done.commit()
        undone = await client.begin_transaction(timeout=LONG)
        await producer.send(b"aborted", txn=undone)
        await undone.abort()
        await producer.send(END)
        open_one = await client.begin_transaction(timeout=LONG)
        await producer.send(b"open", txn=open_one)
        await consumer.acknowledge(await consumer.receive(), txn=open_one)
        await producer.send(b"behind what is open")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("service_url")
    parser.add_argument("admin_url")
    given = parser.parse_args()
    client = pulsar.Client(given.service_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    load = Load(client, given.admin_url)
    for part in (
        load.ranges,
        load.policies,
        load.batches,
        load.chunks,
        load.partitions,
        load.schemas,
        load.compaction,
        load.deleted,
        load.deduplication,
    ):
        part()
    anyio.run(transactions, given.service_url)
    time.sleep(SETTLED)
    client.close()


if __name__ == "__main__":
    main()
