const { expect, test } = require("@jest/globals");
const { usePulsarium } = require("pulsarium/jest");
const { WebSocket } = require("ws");

const pulsarium = usePulsarium();

test("the seeded order waits for billing", async () => {
  const seed = {
    topics: [
      {
        name: pulsarium.topic("new"),
        subscriptions: ["billing"],
        messages: [{ key: "Ada", json: { customer: "Ada", fruit: "apples" } }],
      },
    ],
  };
  await pulsarium.call("POST", "/lab/seed", {}, seed);

  const root = pulsarium.adminUrl.replace("http", "ws");
  const consumer = new WebSocket(`${root}/ws/v2/consumer/persistent/${pulsarium.namespace}/new/billing`);
  const message = await new Promise((resolve) => consumer.once("message", (data) => resolve(JSON.parse(data))));
  expect(JSON.parse(atob(message.payload))).toEqual({ customer: "Ada", fruit: "apples" });
  consumer.close();
});
