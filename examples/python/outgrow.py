"""Copy the messages of a topic to another cluster, and print the commands that move its subscriptions."""

import sys

import anyio
from pyspark.sql.functions import udf

from pulsarium.client import MessageId, connect_admin
from pulsarium.pipeline import session

topic, old, old_admin, new, new_admin = sys.argv[1:]
spark = session()

# Rows without the option "topic" go to the partition in their column __topic. One message is one entry.
source = {"service.url": old, "admin.url": old_admin, "topic": topic, "maxRecordsPerPartition": 0}
target = {"service.url": new, "admin.url": new_admin, "pulsar.producer.batchingEnabled": "false"}
messages = spark.read.format("pulsar").options(**source).load()
messages.write.format("pulsar").options(**target).mode("append").save()


@udf("struct<ledger: long, entry: long>")
def position(message_id):
    found = MessageId.deserialize(bytes(message_id))
    return found.ledger_id, found.entry_id


async def mark_delete_positions(partition):
    async with connect_admin(old_admin) as admin:
        cursors = (await admin.topics.get_internal_stats(partition))["cursors"]
    return {name: tuple(map(int, cursor["markDeletePosition"].split(":"))) for name, cursor in cursors.items()}


messages = messages.select("__topic", position("__messageId").alias("at")).cache()
for (partition,) in sorted(messages.select("__topic").distinct().collect()):
    of_partition = messages.where(messages["__topic"] == partition)
    for subscription, (ledger, entry) in anyio.run(mark_delete_positions, partition).items():
        done = of_partition.where(f"at.ledger < {ledger} OR at.ledger = {ledger} AND at.entry <= {entry}").count()
        if done:
            print(f"pulsarium admin topics skip {partition} -s {subscription} -n {done}")
