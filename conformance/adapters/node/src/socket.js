// A WebSocket of the WebSocket API, and the errors of the broker.
"use strict";

const { setTimeout: sleep } = require("node:timers/promises");
const WebSocket = require("ws");

const PATIENCE = 30_000; // milliseconds for an answer
const MOMENT = 300; // milliseconds in which the broker ends a socket over a request

/** An error of a kind that the kit's protocol knows. */
class Refusal extends Error {
  constructor(kind, text) {
    super(text);
    this.kind = kind;
  }
}

const KINDS = { 400: "InvalidConfiguration", 401: "Authentication", 403: "Authorization", 404: "NotFound" };

/** Return the kind of error of an answer in place of a WebSocket. */
function kindOf(place, status, text) {
  if (status === 409) {
    const busy = place.startsWith("v2/producer") ? "ProducerBusy" : "ConsumerBusy";
    return ["IncompatibleSchema", "Fenced"].find((name) => text.includes(name)) ?? busy;
  }
  return text.includes("terminated") ? "TopicTerminated" : (KINDS[status] ?? "Other");
}

/** Return the kind of error of a receipt, which has a text only. */
function kindOfText(text) {
  const kinds = { terminated: "TopicTerminated", timeout: "Timeout", closed: "AlreadyClosed" };
  const word = Object.keys(kinds).find((each) => text.toLowerCase().includes(each));
  return kinds[word] ?? "Other";
}

/** Open a WebSocket. Throw a Refusal for the broker's answer. */
async function connect(base, place, query, options) {
  let webSocket;
  try {
    webSocket = new WebSocket(`${base}/ws/${place}?${new URLSearchParams(query)}`, options);
  } catch (error) {
    throw new Refusal("InvalidServiceURL", error.message);
  }
  const opened = new Socket(webSocket);
  return new Promise((resolve, reject) => {
    webSocket.on("open", () => resolve(opened));
    webSocket.on("unexpected-response", (request, answer) => {
      let text = "";
      answer.on("data", (data) => (text += data));
      answer.on("end", () => {
        reject(new Refusal(kindOf(place, answer.statusCode, text), `${answer.statusCode} ${text}`));
        request.destroy();
      });
    });
    webSocket.on("error", (error) => reject(new Refusal("Connect", `${error}`)));
  });
}

/** An open WebSocket. Messages wait until they are heard, and receipts go to those who wait for them. */
class Socket {
  constructor(webSocket) {
    this._webSocket = webSocket;
    this._messages = [];
    this._wake = new Set();
    this._receipts = new Map();
    this._ended = new Promise((resolve) => webSocket.once("close", resolve));
    this._hasPermit = false;
    this.pulls = false;
    this.reads = false;
    webSocket.on("message", (data) => this._arrived(JSON.parse(data)));
    webSocket.on("close", (code, reason) => {
      this.reason = `the socket was closed with ${code} ${reason}`;
      for (const each of this._wake) each();
      for (const each of this._receipts.values()) each({ result: "closed", errorMsg: this.reason });
    });
  }

  _arrived(frame) {
    if ("context" in frame) {
      this._receipts.get(frame.context)?.(frame);
      this._receipts.delete(frame.context);
    } else {
      this._messages.push(frame);
      for (const each of this._wake) each();
    }
  }

  say(frame) {
    if (this._webSocket.readyState !== WebSocket.OPEN) throw new Refusal("AlreadyClosed", this.reason ?? "it is closed");
    this._webSocket.send(JSON.stringify(frame));
  }

  /** Publish a message, and return its receipt. */
  publish(frame) {
    this.say(frame);
    return new Promise((resolve) => this._receipts.set(frame.context, resolve));
  }

  /** Return the next message, or undefined if there is none in time. Throw a Refusal when the socket has ended. */
  async hear(milliseconds) {
    if (this.pulls && !this._hasPermit) {
      this.say({ type: "permit", permitMessages: 1 });
      this._hasPermit = true;
    }
    if (!this._messages.length && this.reason === undefined) await this._woken(milliseconds);
    const message = this._messages.shift();
    if (message === undefined) {
      if (this.reason !== undefined) throw new Refusal("AlreadyClosed", this.reason);
      return undefined;
    }
    this._hasPermit = false;
    if (this.reads) this.say({ messageId: message.messageId }); // without an answer it takes a place in the queue
    return message;
  }

  async _woken(milliseconds) {
    const stop = new AbortController();
    let wake;
    const woken = new Promise((resolve) => (wake = resolve));
    this._wake.add(wake);
    await Promise.race([woken, sleep(milliseconds, undefined, { signal: stop.signal }).catch(() => {})]);
    this._wake.delete(wake);
    stop.abort();
  }

  /** Wait a moment. Throw a Refusal when the broker ended the socket, as its only answer to what was said. */
  async settle() {
    await Promise.race([this._ended, sleep(MOMENT)]);
    if (this.reason !== undefined) throw new Refusal("Other", this.reason);
  }

  /** Close the socket after the receipts of what was published. */
  async close() {
    for (const end = Date.now() + PATIENCE; this._receipts.size && Date.now() < end; ) await sleep(10);
    this._webSocket.close();
    await this._ended;
  }
}

module.exports = { PATIENCE, Refusal, connect, kindOfText };
