from pulsarium.pipeline import session

spark = session()
broker = {"service.url": "pulsar://localhost:6650", "admin.url": "http://localhost:8080"}
source = spark.readStream.format("pulsar").options(**broker, topic="hello-spark", startingOffsets="earliest").load()
loud = source.selectExpr("upper(value) AS value", "__key")
sink = loud.writeStream.format("pulsar").options(**broker, topic="hello-loud", checkpointLocation="checkpoint")
sink.trigger(availableNow=True).start().awaitTermination()
