import pulsar

client = pulsar.Client("pulsar://localhost:6650")
consumer = client.subscribe("hello-python", "readme")
producer = client.create_producer("hello-python")
producer.send(b"Hello from Python")
message = consumer.receive(timeout_millis=5000)
print(message.data().decode())
consumer.acknowledge(message)
client.close()
