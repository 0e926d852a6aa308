// The adapter of the conformance kit for the WebSocket API, through the package ws: see conformance/protocol.py.
"use strict";

const crypto = require("node:crypto");
const fs = require("node:fs");
const readline = require("node:readline");
const { version } = require("ws/package.json");
const { Refusal, connect, kindOfText } = require("./socket");

const NO_CALL = "no such call";
const NO_OPTION = "no such option";
const NO_SCHEMAS = "schemas are left to the application";
const NO_TRANSACTIONS = "no transactions";
const NOT_TOLD = "frames do not tell it";
const COMPACTED = "reads the whole topic, compacted or not";

const LACKS = {
  "open.http": "looks up no topics",
  "open.reconnect": "a socket that ended stays closed",
  "producer.access": NO_OPTION,
  "producer.chunk": "a message is one frame",
  "consumer.compacted": COMPACTED,
  "reader.compacted": COMPACTED,
  "consumer.batch-index": "acknowledges whole batches",
  "consumer.receipt": "only acknowledgements without a response",
  "consumer.retry": NO_OPTION,
  "consumer.batch-receive": NO_OPTION,
  "consumer.hash-ranges": NO_OPTION,
  "reader.decrypt": "frames of a reader do not tell the encryption context",
  "reader.inclusive": NO_OPTION,
  "send.ordering-key": "messages have no ordering key",
  "send.null": "a frame needs a payload",
  "send.sequence": "the broker chooses sequence ids",
  "acknowledge-cumulative": "acknowledges single messages",
  ...all(NO_SCHEMAS, "producer.schema", "consumer.schema", "reader.schema"),
  ...all(NO_TRANSACTIONS, "transaction", "commit", "abort", "send.transaction", "acknowledge.transaction"),
  ...all(NOT_TOLD, "receive.topic", "receive.ordering-key", "receive.index", "receive.publisher"),
  ...all(NOT_TOLD, "receive.sequence", "receive.schema-version"),
  ...all(NO_CALL, "flush", "last-sequence", "redeliver", "receive-batch", "reconsume-later", "seek"),
  ...all(NO_CALL, "last-message-id", "has-message", "table-view", "table", "partitions"),
};

function all(reason, ...names) {
  return Object.fromEntries(names.map((name) => [name, reason]));
}

/** An operation or a combination of options that the API does not have. */
class Unsupported extends Error {}

const base64 = (data) => Buffer.from(data).toString("base64");
const bytes = (text) => Buffer.from(text, "base64");

/** A data key, and what a producer tells of it. Applications encrypt themselves, because the broker has no keys. */
class Keys {
  constructor({ name, public: file }) {
    this._key = crypto.randomBytes(32);
    const keyValue = base64(crypto.publicEncrypt(fs.readFileSync(file), this._key));
    this.option = base64(JSON.stringify({ [name]: { keyValue, metadata: {} } }));
  }

  /** Return fields of a frame. */
  encrypted(data) {
    const nonce = crypto.randomBytes(12);
    const cipher = crypto.createCipheriv("aes-256-gcm", this._key, nonce);
    const payload = Buffer.concat([cipher.update(data), cipher.final(), cipher.getAuthTag()]);
    return { payload: base64(payload), encryptionParam: base64(nonce) };
  }
}

const TAG_BYTES = 16;

function decrypted(message, privateKey) {
  const { keys, param } = message.encryptionContext;
  const [{ keyValue }] = Object.values(keys);
  const key = crypto.privateDecrypt(fs.readFileSync(privateKey), bytes(keyValue));
  const payload = bytes(message.payload);
  const decipher = crypto.createDecipheriv("aes-256-gcm", key, bytes(param));
  decipher.setAuthTag(payload.subarray(-TAG_BYTES));
  return Buffer.concat([decipher.update(payload.subarray(0, -TAG_BYTES)), decipher.final()]);
}

/** Return ledger, entry and batch index of an id: the fields 1, 2 and 4 of MessageIdData, which has varints only. */
function place(messageId) {
  const found = [];
  const rest = bytes(messageId)[Symbol.iterator]();
  for (let tag = rest.next(); !tag.done; tag = rest.next()) {
    let number = 0n;
    for (let shift = 0n, byte = 0x80; byte >= 0x80; shift += 7n) {
      byte = rest.next().value;
      number |= BigInt(byte & 0x7f) << shift;
    }
    found[tag.value >> 3] = Number(BigInt.asIntN(64, number));
  }
  return [found[1], found[2], found[4] ?? -1];
}

function told(message, privateKey) {
  const isEncrypted = privateKey !== undefined && message.encryptionContext !== undefined;
  const data = isEncrypted ? decrypted(message, privateKey) : bytes(message.payload);
  const found = {
    id: message.messageId,
    value: data.toString(),
    place: place(message.messageId),
    redeliveries: message.redeliveryCount,
    key: message.key,
  };
  if (Object.keys(message.properties ?? {}).length) found.properties = message.properties;
  if (message.eventTime !== undefined) found["event-time"] = Date.parse(message.eventTime);
  return found;
}

function path(topic) {
  const [domain, name] = topic.split("://");
  const [tenant, namespace, ...rest] = name.split("/");
  return [domain, tenant, namespace, encodeURIComponent(rest.join("/"))].join("/");
}

/** Return an object without the fields that are undefined. */
const given = (fields) => Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));

/** Return the options that consumers and readers share. The adapter decrypts itself, as an application does. */
function reads(request) {
  const action = request.decrypt === undefined ? request["crypto-failure"]?.toUpperCase() : "CONSUME";
  return { receiverQueueSize: request.queue, cryptoFailureAction: action };
}

/** The address and the credentials of sockets, and those that are open. */
class Client {
  constructor(url, options) {
    this._url = url;
    this._options = options;
    this._open = [];
    this._isClosed = false;
  }

  async socket(where, query) {
    if (this._isClosed) throw new Refusal("AlreadyClosed", "the client is closed");
    const opened = await connect(this._url, where, given(query), this._options);
    this._open.push(opened);
    return opened;
  }

  async close() {
    this._isClosed = true;
    await Promise.all(this._open.map((each) => each.close()));
  }
}

const things = new Map();
let contexts = 0;

function thing(handle) {
  if (!things.has(handle)) throw new Refusal("AlreadyClosed", `nothing is open as ${handle}`);
  return things.get(handle);
}

async function reading(request, where, query) {
  const opened = await thing(request.client).socket(where, query);
  opened.privateKey = request.decrypt;
  things.set(request.as, opened);
  return opened;
}

const operations = {
  async open(request) {
    const options = {};
    if (request.token !== undefined) options.headers = { Authorization: `Bearer ${request.token}` };
    if (request.trust !== undefined) options.ca = fs.readFileSync(request.trust);
    things.set(request.as, new Client(request.url, options));
  },

  async close(request) {
    await thing(request.handle).close();
  },

  async producer(request) {
    if (request.encrypt && (request.batch || request.compression)) {
      throw new Unsupported("producer.encrypt: the application encrypts, and the broker makes no batches of it");
    }
    const keys = request.encrypt && new Keys(request.encrypt);
    const batches = { batchingEnabled: true, batchingMaxMessages: request.batch, batchingMaxPublishDelay: 1000 };
    const producer = await thing(request.client).socket(`v2/producer/${path(request.topic)}`, {
      messageRoutingMode: "RoundRobinPartition",
      producerName: request.name,
      compressionType: request.compression,
      encryptionKeys: keys?.option,
      ...(request.batch && batches),
    });
    producer.keys = keys;
    things.set(request.as, producer);
  },

  async send(request) {
    const producer = thing(request.producer);
    const publish = (each) => {
      const data = Buffer.from(each.value);
      const time = each["event-time"];
      return producer.publish({
        context: `${contexts++}`,
        key: each.key,
        properties: each.properties,
        eventTime: time === undefined ? undefined : new Date(time).toISOString(),
        deliverAfterMs: each.delay,
        ...(producer.keys ? producer.keys.encrypted(data) : { payload: base64(data) }),
      });
    };
    const receipts = await Promise.all(request.messages.map(publish));
    for (const { result, errorMsg } of receipts) {
      if (result !== "ok") throw new Refusal(kindOfText(errorMsg), `${result}: ${errorMsg}`);
    }
    return { ids: receipts.map((each) => each.messageId) };
  },

  async consumer(request) {
    const { topics, pattern } = request;
    const subscription = encodeURIComponent(request.subscription);
    const isOne = pattern === undefined && topics.length === 1;
    const where = isOne ? `v2/consumer/${path(topics[0])}/${subscription}` : `v3/consumer/${subscription}`;
    const consumer = await reading(request, where, {
      ...reads(request),
      topicsPattern: pattern,
      topics: isOne || pattern !== undefined ? undefined : topics.join(","),
      subscriptionType: request.type,
      subscriptionInitialPosition: request.start === "earliest" ? "Earliest" : "Latest",
      negativeAckRedeliveryDelay: request["nack-delay"] ?? 100,
      ackTimeoutMillis: request["ack-timeout"],
      consumerName: request.name,
      priorityLevel: request.priority,
      maxRedeliverCount: request["dead-letter"]?.max,
      deadLetterTopic: request["dead-letter"]?.topic,
      pullMode: request.queue === 0 ? true : undefined,
    });
    consumer.pulls = request.queue === 0;
  },

  async reader(request) {
    const query = { messageId: request.start, ...reads(request) };
    (await reading(request, `v2/reader/${path(request.topic)}`, query)).reads = true;
  },

  async receive(request) {
    const consumer = thing(request.consumer);
    const messages = [];
    const end = Date.now() + request.seconds * 1000;
    while (messages.length < request.count) {
      const message = await consumer.hear(Math.max(end - Date.now(), 1));
      if (message === undefined) break;
      messages.push(told(message, consumer.privateKey));
    }
    return { messages };
  },

  async acknowledge(request) {
    thing(request.consumer).say({ messageId: request.message });
  },

  async "negative-acknowledge"(request) {
    thing(request.consumer).say({ type: "negativeAcknowledge", messageId: request.message });
  },

  async unsubscribe(request) {
    const consumer = thing(request.consumer);
    consumer.say({ type: "unsubscribe" });
    await consumer.settle();
  },
};

const ABOUT = { protocol: 2, client: "WebSocket (ws)", version, topics: ["classic"], url: "ws", lacks: LACKS };

async function answerTo(request) {
  if (request.do === "hello") return { ok: { ...ABOUT, operations: Object.keys(operations) } };
  if (!(request.do in operations)) return { unsupported: `no operation ${request.do}` };
  try {
    return { ok: (await operations[request.do](request)) ?? {} };
  } catch (error) {
    if (error instanceof Unsupported) return { unsupported: error.message };
    if (!(error instanceof Refusal)) console.error(error);
    return { error: { kind: error.kind ?? "Other", text: error.message } };
  }
}

readline
  .createInterface({ input: process.stdin })
  .on("line", async (line) => {
    const request = JSON.parse(line);
    process.stdout.write(`${JSON.stringify({ id: request.id, ...(await answerTo(request)) })}\n`);
  })
  .on("close", () => process.exit());
