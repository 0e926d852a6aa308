const { expect, test } = require("@jest/globals");
const { usePulsarium } = require("pulsarium/jest");
const { listen } = require("./service.js");

const pulsarium = usePulsarium();

test("an order is stored when the connection ends", async () => {
  const root = pulsarium.adminUrl.replace("http", "ws");
  const service = await listen(`${root}/ws/v2/producer/persistent/${pulsarium.namespace}/orders`);
  const cut = await pulsarium.fault("close", "SEND");

  const orders = `http://127.0.0.1:${service.address().port}/orders`;
  const { status } = await fetch(orders, { method: "POST", body: "3 apples" });
  service.close();

  expect(status).toBe(201);
  await cut.wait();
  const stored = { topic: pulsarium.topic("orders"), state: "produced", values: [btoa("3 apples")] };
  await pulsarium.call("POST", "/lab/expect", {}, stored);
});
