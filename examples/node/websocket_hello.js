const WebSocket = require("ws");

const ws = "ws://localhost:8080/ws/v2";
const topic = "persistent/public/default/hello-node";

const consumer = new WebSocket(`${ws}/consumer/${topic}/my-subscription?subscriptionType=Shared`);
consumer.on("open", () => {
  const producer = new WebSocket(`${ws}/producer/${topic}`);
  producer.on("open", () => {
    const payload = Buffer.from("Hello World").toString("base64");
    producer.send(JSON.stringify({ payload, properties: { key1: "value1" }, context: "5" }));
  });
  producer.on("message", (data) => {
    const receipt = JSON.parse(data);
    console.log(receipt.result, receipt.context);
    producer.close();
  });
});
consumer.on("message", (data) => {
  const message = JSON.parse(data);
  console.log(Buffer.from(message.payload, "base64").toString(), message.properties);
  consumer.send(JSON.stringify({ messageId: message.messageId }));
  consumer.close();
});
