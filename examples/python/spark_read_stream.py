from pulsarium.pipeline import session

spark = session()
where = {"service.url": "pulsar://localhost:6650", "topic": "hello-spark", "startingOffsets": "earliest"}
counts = spark.readStream.format("pulsar").options(**where).load().groupBy("__key").count()
query = counts.writeStream.format("memory").queryName("counts").outputMode("complete")
query.trigger(availableNow=True).start().awaitTermination()
spark.table("counts").show()
