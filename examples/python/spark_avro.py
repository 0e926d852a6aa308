import json
from urllib.request import urlopen

from pyspark.sql.avro.functions import from_avro, to_avro

from pulsarium.pipeline import session

spark = session(config={"spark.jars.packages": "org.apache.spark:spark-avro_2.13:4.2.0"})
where = {"service.url": "pulsar://localhost:6650", "topic": "avro-orders"}
orders = spark.createDataFrame([("Ada", 3), ("Bob", 1)], "name string, apples int")
orders.write.format("pulsar").options(**where).mode("append").save()
with urlopen("http://localhost:8080/admin/v2/schemas/public/default/avro-orders/schema") as answer:
    schema = json.load(answer)["data"]
raw = spark.read.format("pulsar").options(**where, allowDifferentTopicSchemas="true").load()
records = raw.select(from_avro("value", schema).alias("record"))
more = records.selectExpr("named_struct('name', upper(record.name), 'apples', record.apples + 1) AS record")
more.select(to_avro("record", schema).alias("value")).write.format("pulsar").options(**where).mode("append").save()
spark.read.format("pulsar").options(**where).load().select("name", "apples").show()
