// An adapter: it lets the conformance kit of Pulsarium drive pulsar-flex, a client in JavaScript.
//
// The kit writes one request a line to standard input, and reads one answer a line from standard output. The client
// logs to standard output when it is left alone, so its logs are turned to standard error.
import { EventEmitter, once } from "node:events";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import flex from "pulsar-flex";

const { Producer, Consumer, logLevel } = flex;
const { version } = createRequire(import.meta.url)("pulsar-flex/package.json");

/** Milliseconds for a call of the client. Some never end, and the kit takes a missing answer for the adapter's error. */
const PATIENCE = 20_000;

/** Clients, producers, consumers by the kit's handles. */
const things = new Map();
let count = 0; // of message ids

/** An error of the client, of one of the kit's kinds, such as NotFound or Timeout. */
class Refusal extends Error {
  constructor(kind, text) {
    super(text);
    this.kind = kind;
  }
}

/** What the client does not have, where only the request shows it. */
class Unsupported extends Error {}

/** The kinds by the texts of errors: the client keeps the broker's text, and drops its code. */
const KINDS = [
  [/not (created|connected) producer/, "AlreadyClosed"],
  [/ResponseTimeout/, "Timeout"],
  [/authenticat/i, "Authentication"],
  [/ProducerBusy/, "ProducerBusy"],
  [/ProducerFenced/, "Fenced"],
  [/TopicTerminated/, "TopicTerminated"],
  [/consumer is already connected|different type/i, "ConsumerBusy"],
  [/not found|does not exist/i, "NotFound"],
];

/** Returns what is open as a handle. The kit also asks for handles of nothing. */
function thing(handle) {
  if (!things.has(handle)) throw new Refusal("AlreadyClosed", `nothing is open as ${handle}`);
  return things.get(handle);
}

/** Returns what the client's promise returns, or fails when it takes too long. */
function patiently(promise, what) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Refusal("Timeout", `the client did not end ${what}`)), PATIENCE);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** The options that a producer and a consumer share. The client has no object for a connection or a broker. */
function common(client) {
  return {
    discoveryServers: client.servers,
    jwt: client.token,
    logLevel: logLevel.INFO,
    logCreator: () => ({ label, log }) => console.error(label, log.message),
  };
}

/**
 * A consumer whose messages are pulled. The client pushes: it calls a function with one message after another, and
 * waits for its promise. The promise ends when the kit wants the next message, so that a message that the kit did not
 * ask for stays in the queue of the client, as with an application that works on one message at a time.
 */
class Puller {
  inbox = [];
  acks = new Map(); // by our id of a message, the function of the client that acknowledges it
  news = new EventEmitter();
  wishes = 0; // messages that the kit waits for: 0 or 1
  closed = false;

  constructor(consumer) {
    this.consumer = consumer;
  }

  async take(pushed) {
    this.inbox.push(pushed);
    this.news.emit("change");
    while (!this.closed && this.wishes <= this.inbox.length) await this.change();
  }

  async receive(wanted, seconds) {
    const end = Date.now() + seconds * 1000;
    const got = [];
    while (got.length < wanted && Date.now() < end) {
      if (this.closed) throw new Refusal("AlreadyClosed", "the consumer is closed");
      if (this.inbox.length) {
        got.push(this.told(this.inbox.shift()));
        continue;
      }
      this.wishes = 1;
      this.news.emit("change");
      await this.change(Math.max(1, end - Date.now()));
    }
    this.wishes = 0;
    return got;
  }

  /** Waits until something changes, or for some milliseconds. */
  async change(milliseconds) {
    const signal = milliseconds === undefined ? undefined : AbortSignal.timeout(milliseconds);
    await once(this.news, "change", { signal }).catch(() => {});
  }

  /** Returns a message as the kit wants it. */
  told({ message, metadata, command, redeliveryCount, properties, ack }) {
    const { ledgerid, entryid, batchIndex } = command.messageId;
    const id = `${ledgerid}:${entryid}#${++count}`; // the messages of a batch have the same id in this client
    this.acks.set(id, ack);
    const fields = { id, redeliveries: redeliveryCount, place: [ledgerid, entryid, batchIndex], properties };
    if (metadata.nullValue) fields.null = true;
    else fields.value = message.toString();
    if (metadata.partitionKey !== undefined) fields.key = metadata.partitionKey;
    if (metadata.orderingKey) fields["ordering-key"] = Buffer.from(metadata.orderingKey, "base64").toString();
    if (metadata.eventTime) fields["event-time"] = metadata.eventTime;
    if (metadata.producerName !== undefined) fields.publisher = metadata.producerName;
    if (metadata.sequenceId !== undefined) fields.sequence = metadata.sequenceId;
    return fields;
  }

  async acknowledge(id, type) {
    if (!this.acks.has(id)) throw new Refusal("Other", `this consumer received no ${id}`);
    await patiently(this.acks.get(id)({ type }), "an acknowledgement");
  }

  async close() {
    if (this.closed) return;
    this.closed = true;
    this.news.emit("change");
    await this.consumer.unsubscribe(); // this closes the consumer, and keeps its subscription
  }
}

const ACCESS = {
  shared: Producer.ACCESS_MODES.SHARED,
  exclusive: Producer.ACCESS_MODES.EXCLUSIVE,
  "wait-for-exclusive": Producer.ACCESS_MODES.WAITFOREXCLUSIVE,
};

const OPERATIONS = {
  async open({ as, url, token }) {
    const [scheme, hosts] = url.split("://");
    if (scheme !== "pulsar") throw new Unsupported(`no URL of ${scheme}://`);
    const opened = []; // a client that closes takes its producers and consumers along
    const close = () => Promise.allSettled(opened.map((each) => each.close()));
    things.set(as, { servers: hosts.split(","), token, opened, close });
    return {};
  },
  async close({ handle }) {
    const closing = thing(handle);
    if (!(closing instanceof Producer)) things.delete(handle); // a closed producer itself refuses to send
    await patiently(closing.close(), "the close");
    return {};
  },
  async producer({ as, client, topic, access = "shared", batch }) {
    if (!(access in ACCESS)) throw new Unsupported(`no access mode ${access}`);
    const options = { ...common(thing(client)), topic, producerAccessMode: ACCESS[access] };
    const producer = new Producer(options);
    await patiently(producer.create(), "the opening");
    producer.batch = batch;
    thing(client).opened.push(producer);
    things.set(as, producer);
    return {};
  },
  async send({ producer: handle, messages }) {
    const producer = thing(handle);
    if (messages.some((each) => "key" in each)) throw new Unsupported("no keys");
    const each = messages.map(({ value, properties }) => ({ payload: value, properties }));
    const sent = [];
    if (producer.batch === undefined) sent.push(...each.map((message) => producer.sendMessage(message)));
    else while (each.length) sent.push(producer.sendBatch({ messages: each.splice(0, producer.batch) }));
    await patiently(Promise.all(sent), "the sending");
    return { ids: messages.map(() => `sent#${++count}`) }; // the client keeps the ids of sent messages to itself
  },
  async consumer({ as, client, topics, type, subscription, start, name, compacted, queue }) {
    if (queue === 0) throw new Unsupported("no consumer without a queue");
    const consumer = new Consumer({
      ...common(thing(client)),
      topic: topics[0],
      subscription,
      subType: Consumer.SUB_TYPES[type.toUpperCase()],
      initialPosition: Consumer.INITIAL_POSITION[start.toUpperCase()],
      consumerName: name,
      readCompacted: compacted,
      receiveQueueSize: queue,
    });
    await patiently(consumer.subscribe(), "the subscription");
    const puller = new Puller(consumer);
    await consumer.run({ onMessage: (pushed) => puller.take(pushed), autoAck: false });
    thing(client).opened.push(puller);
    things.set(as, puller);
    return {};
  },
  async receive({ consumer, count: wanted = Infinity, seconds }) {
    return { messages: await thing(consumer).receive(wanted, seconds) };
  },
  async acknowledge({ consumer, message }) {
    await thing(consumer).acknowledge(message, Consumer.ACK_TYPES.INDIVIDUAL);
    return {};
  },
  async "acknowledge-cumulative"({ consumer, message }) {
    await thing(consumer).acknowledge(message, Consumer.ACK_TYPES.CUMULATIVE);
    return {};
  },
  async "negative-acknowledge"({ consumer, message }) {
    await thing(consumer).acknowledge(message, Consumer.ACK_TYPES.NEGATIVE);
    return {};
  },
};

/** Why the client lacks an operation or option. */
const LACKS = {
  "open.http": "topics are looked up with the binary protocol only",
  "open.trust": "no TLS",
  "producer.name": "the broker chooses the names of producers",
  "producer.chunk": "no chunks",
  "producer.compression": "no compression",
  "producer.encrypt": "no encryption",
  "producer.schema": "no schemas",
  "send.ordering-key": "messages have properties, and no keys",
  "send.event-time": "no event times",
  "send.null": "a message must have a payload",
  "send.delay": "no delayed messages",
  "send.sequence": "the client chooses the sequence ids",
  "send.transaction": "no transactions",
  flush: "a message is sent at once, and its promise ends when it is stored",
  "last-sequence": "sequence ids are private",
  "consumer.pattern": "a consumer has one topic",
  "consumer.several": "a consumer has one topic",
  "consumer.schema": "no schemas",
  "consumer.decrypt": "no encryption",
  "consumer.crypto-failure": "no encryption",
  "consumer.nack-delay": "a negatively acknowledged message is asked for at once",
  "consumer.ack-timeout": "no timeout of acknowledgements",
  "consumer.dead-letter": "no dead letter topics",
  "consumer.retry": "no retry letter topics",
  "consumer.batch-index": "an entry is acknowledged as a whole",
  "consumer.priority": "no priority levels",
  "consumer.hash-ranges": "keys are divided by the broker alone",
  "consumer.batch-receive": "messages come one by one",
  reader: "no readers",
  "receive.topic": "a message does not name its topic",
  "receive.index": "the broker's metadata of entries are not read",
  "receive.schema-version": "no schemas",
  "receive-batch": "messages come one by one",
  redeliver: "the redelivery of single messages only",
  "reconsume-later": "no retry letter topics",
  seek: "no seek",
  unsubscribe: "its unsubscribe closes the consumer, and keeps the subscription",
  "last-message-id": "no ids of last messages",
  "has-message": "no readers",
  "table-view": "no table views",
  table: "no table views",
  partitions: "no partitioned topics",
  transaction: "no transactions",
  commit: "no transactions",
  abort: "no transactions",
};
const ABOUT = { protocol: 2, client: "pulsar-flex", version, topics: ["classic"], lacks: LACKS };

/** Returns ok, unsupported or error. Every request is answered, whatever happens. */
async function answer(request) {
  if (request.do === "hello") return { ok: { ...ABOUT, operations: Object.keys(OPERATIONS) } };
  if (!Object.hasOwn(OPERATIONS, request.do)) return { unsupported: `no operation ${request.do}` };
  try {
    return { ok: await OPERATIONS[request.do](request) };
  } catch (error) {
    if (error instanceof Unsupported) return { unsupported: error.message };
    const kind = error.kind ?? KINDS.find(([text]) => text.test(`${error}`))?.[1] ?? "Other";
    return { error: { kind, text: String(error) } };
  }
}

/** Names what a request waits for: requests of one handle keep their order, and a receive holds up no other. */
function turn(request) {
  const names = ["as", "handle", "producer", "consumer", "reader", "view", "transaction", "client"];
  const name = names.find((each) => each in request);
  return `${request[name]}${request.do.startsWith("receive") ? " receive" : ""}`;
}

// The client leaves some promises of its connections alone. Without this, such a one ends the process.
process.on("unhandledRejection", (error) => console.error("a promise that nobody waits for:", error));

const last = new Map(); // by turn, the promise of the latest answer
createInterface({ input: process.stdin })
  .on("line", (line) => {
    const request = JSON.parse(line);
    const told = Promise.resolve(last.get(turn(request))).then(() => answer(request));
    last.set(turn(request), told);
    told.then((fields) => process.stdout.write(`${JSON.stringify({ id: request.id, ...fields })}\n`));
  })
  .on("close", () => process.exit()); // the input has ended, and open clients do not matter any more
