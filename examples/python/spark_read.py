from pulsarium.pipeline import session

spark = session()
where = {
    "service.url": "pulsar://localhost:6650",
    "admin.url": "http://localhost:8080",
    "topic": "hello-spark",
}
orders = spark.read.format("pulsar").options(**where).load()
orders.selectExpr("string(__key)", "value", "__publishTime").show()
