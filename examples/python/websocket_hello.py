import base64
import json

import websocket  # the package websocket-client

WS = "ws://localhost:8080/ws/v2"
TOPIC = "persistent/public/default/hello"

consumer = websocket.create_connection(f"{WS}/consumer/{TOPIC}/my-subscription?subscriptionType=Shared")
producer = websocket.create_connection(f"{WS}/producer/{TOPIC}")

payload = base64.b64encode(b"Hello World").decode()
producer.send(json.dumps({"payload": payload, "properties": {"key1": "value1"}, "context": "5"}))
receipt = json.loads(producer.recv())
print(receipt["result"], receipt["context"])

message = json.loads(consumer.recv())
print(base64.b64decode(message["payload"]).decode(), message["properties"])
consumer.send(json.dumps({"messageId": message["messageId"]}))

producer.close()
consumer.close()
