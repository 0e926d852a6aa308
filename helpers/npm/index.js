// Pulsarium for tests: a namespace, faults and a clock of each test's own.
"use strict";

const { start } = require("./process.js");

class Pulsarium {
  #faults = [];
  #broker;

  /** The URL pulsar://host:port. */
  get serviceUrl() {
    return this.#broker.serviceUrl;
  }

  /** The URL http://host:port. */
  get adminUrl() {
    return this.#broker.adminUrl;
  }

  /** Starts the broker, with options of "pulsarium serve". */
  async start(options = []) {
    this.#broker = await start(options);
  }

  /** Ends the broker that start() started, and returns when it has ended. */
  async stop() {
    await this.#broker?.stop();
  }

  /** Gives the next test a namespace of its own. */
  async begin(name = "test") {
    this.namespace = (await this.call("POST", "/lab/namespaces", {}, { name: name.replaceAll("/", "-") })).name;
    this.clock = new Clock(this);
  }

  /** Removes the faults of the test, its namespace, and the namespace's time. */
  async end() {
    if (!this.namespace) return;
    for (const fault of this.#faults.splice(0)) await fault.remove();
    await this.clock.reset();
    await this.call("DELETE", `/lab/namespaces/${this.namespace}`);
    this.namespace = undefined;
  }

  /** Returns the full name of a topic of the test. A missing topic is created by its first client. */
  topic(name) {
    return `persistent://${this.namespace}/${name}`;
  }

  /** Applies an action, such as "drop" or { kind: "delay", seconds: 1 }, to frames of a command, such as "SEND". */
  async fault(action, command, which = {}) {
    const { id } = await this.call("POST", "/lab/faults", {}, { action, command, namespace: this.namespace, ...which });
    const fault = new Fault(this, `/lab/faults/${id}`);
    this.#faults.push(fault);
    return fault;
  }

  /** Sends a request to the broker's HTTP port, and returns the JSON of its answer. */
  async call(method, path, query = {}, body = undefined) {
    const answer = await fetch(`${this.adminUrl}${path}?${new URLSearchParams(query)}`, {
      method,
      headers: { "Content-Type": "application/json" },
      body: body && JSON.stringify(body),
    });
    const said = await answer.text();
    const gone = method === "DELETE" && answer.status === 404;
    if (!answer.ok && !gone) throw new Error(`${method} ${path}: status ${answer.status}: ${said}`);
    return said && JSON.parse(said);
  }
}

class Fault {
  constructor(broker, path) {
    Object.assign(this, { broker, path });
  }

  /** Returns when the rule has acted so many times. Throws after 30 seconds. */
  async wait(hits = 1) {
    await this.broker.call("GET", `${this.path}/wait`, { n: hits, timeout: 30 });
  }

  /** Returns how often the rule has acted. */
  async hits() {
    return (await this.broker.call("GET", this.path)).hits;
  }

  /** Removes the rule, which may be removed already. */
  async remove() {
    await this.broker.call("DELETE", this.path);
  }
}

class Clock {
  constructor(broker) {
    Object.assign(this, { broker, namespace: broker.namespace });
  }

  /** Advances the clock by so many seconds, and returns when all due timers have run. */
  async advance(seconds) {
    await this.#call("POST", "/advance", { seconds });
  }

  async freeze() {
    await this.#call("POST", "/freeze");
  }

  async resume() {
    await this.#call("POST", "/resume");
  }

  /** Returns to the broker's time. */
  async reset() {
    await this.#call("POST", "/reset");
  }

  /** Returns the clock's time. */
  async now() {
    return new Date((await this.#call("GET", "")).nowMs);
  }

  #call(method, path, body) {
    return this.broker.call(method, `/lab/clock${path}`, { namespace: this.namespace }, body);
  }
}

/** Returns usePulsarium() for a test runner with these hooks. */
function use({ beforeAll, beforeEach, afterEach, afterAll, expect }) {
  return function usePulsarium(...options) {
    const pulsarium = new Pulsarium();
    beforeAll(() => pulsarium.start(options), 90_000);
    beforeEach(() => pulsarium.begin(expect.getState().currentTestName));
    afterEach(() => pulsarium.end());
    afterAll(() => pulsarium.stop());
    return pulsarium;
  };
}

module.exports = { Pulsarium, use };
