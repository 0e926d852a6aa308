// Scenarios of acknowledgement and redelivery.
"use strict";

const { equal, text, texts } = require("./support");

const NACKS = { subscriptionType: "Shared", negativeAckRedeliveryDelay: 100 };

module.exports = {
  async "shared-nack"(cell) {
    const ours = cell.sockets();
    const consumer = await ours.consumer(cell.topic, NACKS);
    await (await ours.producer(cell.topic)).send(texts(0, 10));
    for (const message of await consumer.receive(10)) {
      if (text(message) === "a0004") consumer.nack(message);
      else consumer.acknowledge(message);
    }
    equal(await consumer.consume(1), ["a0004"]);
    await consumer.nothingMore();
  },

  async "redelivery-count"(cell) {
    const ours = cell.sockets();
    const consumer = await ours.consumer(cell.topic, NACKS);
    await (await ours.producer(cell.topic)).send(["again"]);
    const counts = [];
    for (let times = 0; times < 3; times++) {
      const [message] = await consumer.receive(1);
      counts.push(message.redeliveryCount);
      consumer.nack(message);
    }
    equal(counts, [0, 1, 2]);
  },

  async "ack-timeout"(cell) {
    const ours = cell.sockets();
    const consumer = await ours.consumer(cell.topic, { subscriptionType: "Shared", ackTimeoutMillis: 1000 });
    await (await ours.producer(cell.topic)).send(["again"]);
    await consumer.receive(1);
    equal(await consumer.consume(1), ["again"]);
  },

  async "dead-letter"(cell) {
    const ours = cell.sockets();
    const letters = await ours.consumer(`${cell.topic}-s-DLQ`);
    const consumer = await ours.consumer(cell.topic, { ...NACKS, maxRedeliverCount: 2 });
    await (await ours.producer(cell.topic)).send(["dead"]);
    for (let times = 0; times < 3; times++) consumer.nack((await consumer.receive(1))[0]);
    equal(await letters.consume(1), ["dead"]);
    await consumer.nothingMore();
  },

  async unsubscribe(cell) {
    const ours = cell.sockets();
    const consumer = await ours.consumer(cell.topic);
    await (await ours.producer(cell.topic)).send(texts(0, 5));
    equal(await consumer.consume(5), texts(0, 5));
    consumer.say({ type: "unsubscribe" });
    await consumer.close();
    equal(await (await ours.consumer(cell.topic)).consume(5), texts(0, 5));
  },
};
