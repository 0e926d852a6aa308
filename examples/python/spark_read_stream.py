from pulsarium.pipeline import session

spark = session()
where = {"service.url": "pulsar://localhost:6650", "topic": "hello-spark", "startingOffsets": "earliest"}
orders = spark.readStream.format("pulsar").options(**where).load().selectExpr("string(__key) AS name", "value")
query = orders.groupBy("name").count().writeStream.format("memory").queryName("counts").outputMode("complete")
query.trigger(availableNow=True).start().awaitTermination()
spark.table("counts").show()
