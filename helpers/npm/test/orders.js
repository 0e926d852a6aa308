// The same tests for Jest and Vitest. Messages travel over WebSockets, because no client for Node.js is needed for these.
"use strict";

const { WebSocket } = require("ws");

exports.orders = function ({ usePulsarium, test, expect }) {
  const pulsarium = usePulsarium();
  let last;

  test("a fault ends with its test", async () => {
    await pulsarium.fault("drop", "SEND");
    last = pulsarium.namespace;
  });

  test("the next test has another namespace, and no faults", async () => {
    expect(pulsarium.namespace).not.toBe(last);
    expect(await pulsarium.call("GET", "/lab/faults")).toEqual([]);
  });

  test("a reminder arrives after a week", async () => {
    const consumer = open("consumer", "orders/billing?subscriptionType=Shared");
    await opened(consumer);
    const producer = open("producer", "orders");
    const week = 7 * 86_400;
    await send(producer, "pay", { deliverAfterMs: week * 1000 });
    const before = await pulsarium.clock.now();
    await pulsarium.clock.advance(week + 60);
    expect((await pulsarium.clock.now()) - before).toBeGreaterThanOrEqual(week * 1000);
    expect(Buffer.from((await message(consumer)).payload, "base64").toString()).toBe("pay");
    producer.close();
    consumer.close();
  });

  test.skipIf(!process.env.PULSARIUM_TEST_DIES)("this process dies", async () => {
    await pulsarium.fault("drop", "SEND");
    process.kill(process.pid, "SIGKILL");
    await new Promise(() => {});
  });

  function open(role, path) {
    const root = pulsarium.adminUrl.replace("http", "ws");
    const socket = new WebSocket(`${root}/ws/v2/${role}/persistent/${pulsarium.namespace}/${path}`);
    socket.arrived = new Promise((resolve) => socket.once("message", (data) => resolve(JSON.parse(data))));
    return socket;
  }
};

function opened(socket) {
  return socket.readyState === WebSocket.OPEN || new Promise((resolve) => socket.once("open", resolve));
}

function message(socket) {
  return socket.arrived;
}

async function send(socket, text, more = {}) {
  await opened(socket);
  const answer = new Promise((resolve) => socket.once("message", (data) => resolve(JSON.parse(data))));
  socket.send(JSON.stringify({ payload: Buffer.from(text).toString("base64"), ...more }));
  return answer;
}
