from pulsarium.pipeline import session

spark = session()
where = {
    "service.url": "pulsar://localhost:6650",
    "admin.url": "http://localhost:8080",
    "topic": "from-connector",
    "pulsar.client.numIoThreads": "4",  # accepted with a warning
}
rows = spark.createDataFrame([("Ada", "three apples"), ("Bob", "a pear")], "__key string, value string")
rows.write.format("pulsar").options(**where).mode("append").save()
orders = spark.readStream.format("pulsar").options(**where, startingOffsets="earliest").load()
names = orders.selectExpr("upper(CAST(__key AS STRING)) AS name", "CAST(value AS STRING)")
query = names.writeStream.format("memory").queryName("names").trigger(availableNow=True).start()
query.awaitTermination()
spark.table("names").show()
