// Scenarios of messages between producer and consumer.
"use strict";

const crypto = require("node:crypto");
const fs = require("node:fs");
const { MOMENT, base64, bytes, equal, place, share, sleep, text, texts, that } = require("./support");

async function compression(cell) {
  const ours = cell.sockets();
  const consumer = await ours.consumer(cell.topic);
  const sent = texts(0, 10).map((each) => each.repeat(1000));
  const compressionType = cell.scenario.replace("compression-", "").toUpperCase();
  await (await ours.producer(cell.topic, { compressionType })).send(sent);
  equal(await consumer.consume(10), sent);
}

async function passes(cell, topic) {
  const ours = cell.sockets();
  const consumer = await ours.consumer(topic);
  await (await ours.producer(topic)).send(texts(0, 10));
  equal(await consumer.consume(10), texts(0, 10));
}

// The broker has no keys, so that this program encrypts and decrypts. As in Pulsar, AES has a key of 256 bits.
const TAG_BYTES = 16;

function encrypted(data, key, nonce) {
  const cipher = crypto.createCipheriv("aes-256-gcm", key, nonce);
  return Buffer.concat([cipher.update(data), cipher.final(), cipher.getAuthTag()]);
}

function decrypted(message, privateKey) {
  const context = message.encryptionContext;
  const key = crypto.privateDecrypt(privateKey, bytes(context.keys.k.keyValue));
  const payload = bytes(message.payload);
  const decipher = crypto.createDecipheriv("aes-256-gcm", key, bytes(context.param));
  decipher.setAuthTag(payload.subarray(-TAG_BYTES));
  return Buffer.concat([decipher.update(payload.subarray(0, -TAG_BYTES)), decipher.final()]).toString();
}

module.exports = {
  async "produce-consume"(cell) {
    const ours = cell.sockets();
    const consumer = await ours.consumer(cell.topic);
    await (await ours.producer(cell.topic)).send(texts(0, 10), { key: "k", properties: { p: "v" } });
    const messages = await consumer.receive(10);
    equal(messages.map((one) => [text(one), one.key, one.properties]), texts(0, 10).map((one) => [one, "k", { p: "v" }]));
    messages.forEach((message) => consumer.acknowledge(message));
    await consumer.close();
    await (await ours.consumer(cell.topic)).nothingMore();
  },

  async batching(cell) {
    const ours = cell.sockets();
    const consumer = await ours.consumer(cell.topic);
    const batches = { batchingEnabled: true, batchingMaxMessages: 10, batchingMaxPublishDelay: 10_000 };
    await (await ours.producer(cell.topic, batches)).send(texts(0, 10));
    const messages = await consumer.receive(10);
    equal(messages.map(text), texts(0, 10));
    const places = messages.map((message) => place(message.messageId));
    equal(new Set(places.map((each) => `${each.ledger}:${each.entry}`)).size, 1, "entries");
    equal(places.map((each) => each.batchIndex), [...texts(0, 10).keys()], "batch indexes");
  },

  "compression-lz4": compression,
  "compression-zlib": compression,
  "compression-zstd": compression,
  "compression-snappy": compression,

  async delayed(cell) {
    const ours = cell.sockets();
    const consumer = await ours.consumer(cell.topic, { subscriptionType: "Shared" });
    const producer = await ours.producer(cell.topic);
    const start = Date.now();
    await producer.send(["later"], { deliverAfterMs: 1000 });
    await producer.send(["now"]);
    equal(await consumer.consume(2), ["now", "later"]);
    that(Date.now() - start > 900, "too early");
  },

  "non-persistent": (cell) => passes(cell, cell.topic.replace("persistent://", "non-persistent://")),

  async encryption(cell) {
    const dataKey = crypto.randomBytes(32);
    const keyValue = base64(crypto.publicEncrypt(fs.readFileSync(cell.public_key), dataKey));
    const ours = cell.sockets();
    const consumer = await ours.consumer(cell.topic, { cryptoFailureAction: "CONSUME" });
    const without = await ours.reader(cell.topic, "earliest"); // fails as long as it cannot decrypt
    const encryptionKeys = base64(JSON.stringify({ k: { keyValue, metadata: {} } }));
    const producer = await ours.producer(cell.topic, { encryptionKeys });
    for (const each of texts(0, 3)) {
      const nonce = crypto.randomBytes(12);
      producer.say({ payload: base64(encrypted(each, dataKey, nonce)), encryptionParam: base64(nonce) });
      equal((await producer.hear())?.result, "ok");
    }
    const messages = await consumer.receive(3);
    const privateKey = fs.readFileSync(cell.private_key);
    equal(messages.map((message) => decrypted(message, privateKey)), texts(0, 3));
    that(!messages.some((message) => texts(0, 3).includes(text(message))), "in the clear");
    await without.nothingMore();
  },

  async "key-shared"(cell) {
    const ours = cell.sockets();
    const consumers = [];
    for (let times = 0; times < 2; times++) {
      consumers.push(await ours.consumer(cell.topic, { subscriptionType: "Key_Shared" }));
    }
    const producer = await ours.producer(cell.topic);
    for (const number of "0123456789") {
      for (const each of "abcde") await producer.send([number], { key: each });
    }
    const arrivals = await share(consumers, 50);
    for (const key of "abcde") {
      const found = arrivals.filter(([, message]) => message.key === key);
      equal(found.map(([, message]) => text(message)).join(""), "0123456789", `order of ${key}`);
      equal(new Set(found.map(([consumer]) => consumer)).size, 1, `consumers of ${key}`);
    }
  },

  async reader(cell) {
    const ours = cell.sockets();
    const ids = await (await ours.producer(cell.topic)).send(texts(0, 10));
    // A reader acknowledges too: a message without an acknowledgement takes a place in the queue.
    equal(await (await ours.reader(cell.topic, "earliest")).consume(10), texts(0, 10));
    equal(await (await ours.reader(cell.topic, ids[4])).consume(5), texts(5, 10));
  },

  // The first message has the number after `initialSequenceId`.
  async deduplication(cell) {
    const ours = cell.sockets();
    const consumer = await ours.consumer(cell.topic);
    for (const [initialSequenceId, sent] of [[-1, texts(0, 3)], [0, texts(1, 4)]]) {
      const producer = await ours.producer(cell.topic, { producerName: "p", initialSequenceId });
      await producer.send(sent);
      await producer.close();
      await sleep(MOMENT);
    }
    equal(await consumer.consume(4), texts(0, 4));
    await consumer.nothingMore();
  },
};
