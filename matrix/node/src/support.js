// Sockets of the WebSocket API, messages on them, and checks.
"use strict";

const { isDeepStrictEqual } = require("node:util");
const { setTimeout: sleep } = require("node:timers/promises");
const WebSocket = require("ws");

// in milliseconds
const PATIENCE = 20_000; // for an expected event
const QUIET = 300; // without a message, after which no more messages are expected
const MOMENT = 20; // between two checks of a condition

class Failure extends Error {}

/** An answer in place of a WebSocket. */
class Refused extends Error {
  constructor(status) {
    super(`refused with ${status}`);
    this.status = status;
  }
}

function that(holds, what) {
  if (!holds) throw new Failure(what);
}

function equal(got, wanted, what = "values") {
  that(isDeepStrictEqual(got, wanted), `${what}: got ${JSON.stringify(got)}, wanted ${JSON.stringify(wanted)}`);
}

function texts(start, end) {
  return Array.from({ length: end - start }, (_, index) => `a${String(start + index).padStart(4, "0")}`);
}

const base64 = (data) => Buffer.from(data).toString("base64");
const bytes = (text) => Buffer.from(text, "base64");
const text = (message) => bytes(message.payload).toString();

/** An open WebSocket, whose frames wait until they are heard. */
class Socket {
  constructor(webSocket) {
    this._webSocket = webSocket;
    this._frames = [];
    this._wake = () => {};
    webSocket.on("message", (data) => {
      this._frames.push(JSON.parse(data));
      this._wake();
    });
  }

  say(frame) {
    this._webSocket.send(JSON.stringify(frame));
  }

  /** Return the next frame, or undefined if there is none in time. */
  async hear(milliseconds = PATIENCE) {
    if (!this._frames.length) {
      const stop = new AbortController();
      const woken = new Promise((resolve) => {
        this._wake = resolve;
      });
      await Promise.race([woken, sleep(milliseconds, undefined, { signal: stop.signal }).catch(() => {})]);
      stop.abort();
    }
    return this._frames.shift();
  }

  /** Publish without waiting for each message, and return the ids in order. */
  async send(payloads, fields = {}) {
    payloads.forEach((payload, number) => this.say({ payload: base64(payload), context: `${number}`, ...fields }));
    const receipts = [];
    for (const _ of payloads) receipts.push((await this.hear()) ?? {});
    that(receipts.every((each) => each.result === "ok"), `refused: ${JSON.stringify(receipts)}`);
    equal(receipts.map((each) => Number(each.context)), [...payloads.keys()], "receipts");
    return receipts.map((each) => each.messageId);
  }

  async receive(count) {
    const found = [];
    while (found.length < count) {
      const message = await this.hear();
      that(message, `only ${found.length} of ${count} messages arrived`);
      found.push(message);
    }
    return found;
  }

  acknowledge(message) {
    this.say({ messageId: message.messageId });
  }

  nack(message) {
    this.say({ type: "negativeAcknowledge", messageId: message.messageId });
  }

  /** Return the texts of the next messages after acknowledging each. */
  async consume(count) {
    const found = await this.receive(count);
    found.forEach((message) => this.acknowledge(message));
    return found.map(text);
  }

  async nothingMore() {
    const message = await this.hear(QUIET);
    that(!message, `an unexpected message arrived: ${JSON.stringify(message)}`);
  }

  async close() {
    if (this._webSocket.readyState === WebSocket.CLOSED) return;
    const closed = new Promise((resolve) => this._webSocket.once("close", resolve));
    this._webSocket.close();
    await closed;
  }
}

/** Opens the sockets of one scenario, and closes them at its end. */
class Sockets {
  constructor(httpUrl, options) {
    this._url = httpUrl.replace(/^http/, "ws");
    this._options = options;
    this._open = [];
  }

  producer(topic, query = {}) {
    return this._opened(`v2/producer/${path(topic)}`, query);
  }

  consumer(topic, query = {}) {
    return this._opened(`v2/consumer/${path(topic)}/s`, { subscriptionInitialPosition: "Earliest", ...query });
  }

  consumerOfSeveral(query) {
    return this._opened("v3/consumer/s", { subscriptionInitialPosition: "Earliest", ...query });
  }

  reader(topic, messageId) {
    return this._opened(`v2/reader/${path(topic)}`, { messageId });
  }

  _opened(place, query) {
    const webSocket = new WebSocket(`${this._url}/ws/${place}?${new URLSearchParams(query)}`, this._options);
    const found = new Socket(webSocket);
    return new Promise((resolve, reject) => {
      webSocket.on("open", () => {
        this._open.push(found);
        resolve(found);
      });
      webSocket.on("unexpected-response", (request, answer) => {
        request.destroy();
        reject(new Refused(answer.statusCode));
      });
      webSocket.on("error", reject);
    });
  }

  async close() {
    await Promise.all(this._open.map((each) => each.close()));
  }
}

const path = (topic) => topic.replace("://", "/");

/** Return the next messages of several consumers, each with its consumer's number, after acknowledging them. */
async function share(consumers, count) {
  const found = [];
  const end = Date.now() + PATIENCE;
  while (found.length < count && Date.now() < end) {
    for (const [number, consumer] of consumers.entries()) {
      for (let message = await consumer.hear(50); message; message = await consumer.hear(50)) {
        consumer.acknowledge(message);
        found.push([number, message]);
      }
    }
  }
  equal(found.length, count, "messages");
  return found;
}

/** Check that the broker answers this HTTP status in place of a WebSocket. */
async function refused(status, opening) {
  let answered;
  try {
    await opening;
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    answered = error.status;
  }
  equal(answered, status, "status");
}

/** Return the numbers in a message id: the fields of MessageIdData, which has varints only. */
function place(messageId) {
  const names = [, "ledger", "entry", "partition", "batchIndex"];
  const found = {};
  const rest = bytes(messageId)[Symbol.iterator]();
  for (let tag = rest.next(); !tag.done; tag = rest.next()) {
    let number = 0n;
    for (let shift = 0n, byte = 0x80; byte >= 0x80; shift += 7n) {
      byte = rest.next().value;
      number |= BigInt(byte & 0x7f) << shift;
    }
    found[names[tag.value >> 3]] = Number(BigInt.asIntN(64, number));
  }
  return found;
}

module.exports = {
  Failure, MOMENT, PATIENCE, Sockets, base64, bytes, equal, place, refused, share, sleep, text, texts, that,
};
