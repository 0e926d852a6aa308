from pulsarium.pipeline import session

spark = session(master="sc://localhost:15002")
where = {"service.url": "pulsar://localhost:6650", "topic": "hello-connect"}
orders = spark.createDataFrame([("Ada", "three apples"), ("Bob", "a pear")], "__key string, value string")
orders.write.format("pulsar").options(**where).mode("append").save()
spark.read.format("pulsar").options(**where).load().selectExpr("string(__key)", "value").show()
