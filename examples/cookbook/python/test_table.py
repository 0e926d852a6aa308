import time

import httpx
import pulsar


def compact(admin_url, topic):
    compaction = f"{admin_url}/admin/v2/{topic.replace('://', '/')}/compaction"
    httpx.put(compaction).raise_for_status()
    while httpx.get(compaction).json()["status"] == "RUNNING":
        time.sleep(0.05)


def test_a_table_has_the_newest_price_of_each_fruit(pulsar_client, pulsar_topic):
    producer = pulsar_client.create_producer(pulsar_topic)
    producer.send(b"1.20", partition_key="apple")
    producer.send(b"2.50", partition_key="melon")
    producer.send(b"1.40", partition_key="apple")

    table = pulsar_client.create_table_view(pulsar_topic)

    assert len(table) == 2
    assert table.get("apple") == b"1.40"


def test_compaction_leaves_the_newest_price(pulsar_broker, pulsar_client, pulsar_topic):
    producer = pulsar_client.create_producer(pulsar_topic)
    producer.send(b"1.20", partition_key="apple")
    producer.send(b"1.40", partition_key="apple")

    compact(pulsar_broker.admin_url, pulsar_topic)

    whole = pulsar_client.create_reader(pulsar_topic, pulsar.MessageId.earliest)
    newest = pulsar_client.create_reader(pulsar_topic, pulsar.MessageId.earliest, is_read_compacted=True)
    assert whole.read_next(30_000).data() == b"1.20"
    assert newest.read_next(30_000).data() == b"1.40"
