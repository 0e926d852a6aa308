from pulsarium.pipeline import session

spark = session()
orders = spark.createDataFrame([("Ada", "three apples"), ("Bob", "a pear")], "__key string, value string")
where = {"service.url": "pulsar://localhost:6650", "topic": "hello-spark"}
orders.write.format("pulsar").options(**where).mode("append").save()
