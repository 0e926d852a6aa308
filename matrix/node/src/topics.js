// Scenarios of subscriptions, topics and brokers.
"use strict";

const fs = require("node:fs");
const { MOMENT, PATIENCE, equal, place, refused, share, sleep, text, texts, that } = require("./support");

const bearer = (token) => ({ headers: { Authorization: `Bearer ${token}` } });

async function passes(cell, ours) {
  const consumer = await ours.consumer(cell.topic);
  await (await ours.producer(cell.topic)).send(texts(0, 5));
  equal(await consumer.consume(5), texts(0, 5));
}

module.exports = {
  async "exclusive-busy"(cell) {
    const ours = cell.sockets();
    const first = await ours.consumer(cell.topic);
    await refused(409, ours.consumer(cell.topic));
    await first.close();
    await ours.consumer(cell.topic);
  },

  async failover(cell) {
    const ours = cell.sockets();
    const consumers = [];
    for (const consumerName of "ab") {
      consumers.push(await ours.consumer(cell.topic, { subscriptionType: "Failover", consumerName }));
    }
    const producer = await ours.producer(cell.topic);
    await producer.send(texts(0, 10));
    // A hash of the consumers' names and the topic's name decides which consumer is active.
    let [standby, active] = consumers;
    let message;
    for (const end = Date.now() + PATIENCE; !message && Date.now() < end; ) {
      [active, standby] = [standby, active];
      message = await active.hear(100);
    }
    that(message, "no consumer is active");
    active.acknowledge(message);
    equal([text(message), ...(await active.consume(9))], texts(0, 10));
    await standby.nothingMore();
    await active.close();
    await producer.send(texts(10, 20));
    equal(await standby.consume(10), texts(10, 20));
  },

  async shared(cell) {
    const ours = cell.sockets();
    const consumers = [];
    for (let times = 0; times < 2; times++) {
      consumers.push(await ours.consumer(cell.topic, { subscriptionType: "Shared", receiverQueueSize: 5 }));
    }
    await (await ours.producer(cell.topic)).send(texts(0, 20));
    const found = await share(consumers, 20);
    equal(found.map(([, message]) => text(message)).sort(), texts(0, 20));
    equal([...new Set(found.map(([consumer]) => consumer))].sort(), [0, 1], "consumers");
  },

  async partitioned(cell) {
    const ours = cell.sockets();
    const consumer = await ours.consumer(cell.topic);
    const producer = await ours.producer(cell.topic, { messageRoutingMode: "RoundRobinPartition" });
    for (const each of texts(0, 30)) await producer.send([each]);
    const messages = await consumer.receive(30);
    equal(messages.map(text).sort(), texts(0, 30));
    const partitions = new Set(messages.map((message) => place(message.messageId).partition));
    equal([...partitions].sort(), [0, 1, 2], "partitions");
  },

  async pattern(cell) {
    const base = `persistent://${cell.namespace}/`;
    const ours = cell.sockets();
    for (const name of ["red-1", "red-2", "blue"]) await (await ours.producer(base + name)).send([name]);
    const consumer = await ours.consumerOfSeveral({ topicsPattern: `${base}red-.*` });
    equal((await consumer.consume(2)).sort(), ["red-1", "red-2"]);
    await consumer.nothingMore();
  },

  async "multi-topics"(cell) {
    const topics = [`${cell.topic}-0`, `${cell.topic}-1`];
    const ours = cell.sockets();
    const consumer = await ours.consumerOfSeveral({ topics: topics.join(",") });
    for (const topic of topics) await (await ours.producer(topic)).send([topic]);
    equal((await consumer.consume(2)).sort(), topics);
  },

  async unload(cell) {
    const ours = cell.sockets();
    const consumer = await ours.consumer(cell.topic);
    const producer = await ours.producer(cell.topic);
    await producer.send(texts(0, 5));
    equal(await consumer.consume(5), texts(0, 5));
    await cell.do("unload");
    await producer.send(texts(5, 10));
    // Acknowledgements in flight may have been lost with the old consumer.
    const left = new Set(texts(5, 10));
    while (left.size) left.delete((await consumer.consume(1))[0]);
  },

  async brokers(cell) {
    for (const url of cell.http_urls) {
      const ours = cell.sockets(url);
      for (let number = 0; number < 8; number++) {
        const topic = `${cell.topic}-${number}`;
        const consumer = await ours.consumer(topic);
        await (await ours.producer(topic)).send([topic]);
        equal(await consumer.consume(1), [topic]);
      }
      await ours.close();
    }
  },

  async token(cell) {
    await passes(cell, cell.sockets(cell.http_url, bearer(cell.token)));
    await refused(401, cell.sockets(cell.http_url, bearer(cell.wrong_token)).producer(cell.topic));
  },

  async tls(cell) {
    await passes(cell, cell.sockets(cell.https_url, { ...bearer(cell.token), ca: fs.readFileSync(cell.authority) }));
  },

  async "zero-queue"(cell) {
    const ours = cell.sockets();
    const consumer = await ours.consumer(cell.topic, { pullMode: true });
    await (await ours.producer(cell.topic)).send(texts(0, 10));
    await consumer.nothingMore();
    for (const each of texts(0, 10)) {
      consumer.say({ type: "permit", permitMessages: 1 });
      equal(await consumer.consume(1), [each]);
    }
  },

  async "producer-name"(cell) {
    const ours = cell.sockets();
    const producer = await ours.producer(cell.topic, { producerName: "p" });
    await refused(409, ours.producer(cell.topic, { producerName: "p" }));
    await producer.close();
    await ours.producer(cell.topic, { producerName: "p" });
  },

  async terminated(cell) {
    const ours = cell.sockets();
    const consumer = await ours.consumer(cell.topic);
    const producer = await ours.producer(cell.topic, { sendTimeoutMillis: 5000 });
    await producer.send(texts(0, 5));
    await cell.do("terminate");
    equal(await consumer.consume(5), texts(0, 5));
    // The topic ends for a consumer with the last acknowledgement, for which there is no receipt.
    const end = Date.now() + PATIENCE;
    for (let answer; !answer?.endOfTopic; answer = await consumer.hear()) {
      that(Date.now() < end, "the topic does not end");
      await sleep(MOMENT);
      consumer.say({ type: "isEndOfTopic" });
    }
    producer.say({ payload: "" });
    const answer = await producer.hear();
    that(answer?.result.startsWith("send-error"), `the message was accepted: ${JSON.stringify(answer)}`);
  },
};
