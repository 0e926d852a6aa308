const { expect, test } = require("@jest/globals");
const { usePulsarium } = require("pulsarium/jest");
const { WebSocket } = require("ws");

const pulsarium = usePulsarium();

test("a refused order is an error of its sender", async () => {
  const fault = await pulsarium.fault({ kind: "answer", error: "PersistenceError" }, "SEND");
  const topics = `${pulsarium.adminUrl.replace("http", "ws")}/ws/v2/producer/persistent/${pulsarium.namespace}`;
  const producer = new WebSocket(`${topics}/orders`);
  const answer = new Promise((resolve) => producer.once("message", (data) => resolve(JSON.parse(data))));
  producer.once("open", () => producer.send(JSON.stringify({ payload: btoa("3 apples") })));
  expect((await answer).result).toMatch("send-error");
  await fault.wait();
  producer.close();
});
