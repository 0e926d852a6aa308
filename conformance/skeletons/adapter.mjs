// An adapter: it lets the conformance kit of Pulsarium drive a client in JavaScript.
//
// The kit writes one request a line to standard input, and reads one answer a line from standard output. Logs belong
// on standard error: console.error. Add a function for each operation that the client has. docs/conformance.md lists
// the operations.
import { createInterface } from "node:readline";

/** Clients, producers, consumers, ... by the kit's handles. */
const things = new Map();

/** An error of the client, of one of the kit's kinds, such as NotFound or Timeout. */
class Refusal extends Error {
  constructor(kind, text) {
    super(text);
    this.kind = kind;
  }
}

/** Returns what is open as a handle. The kit also asks for handles of nothing. */
function thing(handle) {
  if (!things.has(handle)) throw new Refusal("AlreadyClosed", `nothing is open as ${handle}`);
  return things.get(handle);
}

const OPERATIONS = {
  async open(request) {
    things.set(request.as, request.url); // TODO: connect a client to the URL, and keep the client
    return {}; // an operation that returns something has it here, such as { ids: ["1:0"] }
  },
  async close(request) {
    thing(request.handle); // TODO: await the close() of the client, producer or consumer
    things.delete(request.handle);
    return {};
  },
};

/** Why the client lacks an operation or option: { "send.delay": "no delayed messages" }. */
const LACKS = {};
const ABOUT = { protocol: 2, client: "My-Client", version: "1.0", topics: ["classic"], lacks: LACKS };

/** Returns ok, unsupported or error. Every request is answered, whatever happens. */
async function answer(request) {
  if (request.do === "hello") return { ok: { ...ABOUT, operations: Object.keys(OPERATIONS) } };
  if (!Object.hasOwn(OPERATIONS, request.do)) return { unsupported: `no operation ${request.do}` };
  try {
    return { ok: await OPERATIONS[request.do](request) };
  } catch (error) {
    // TODO: find the kind of the client's own errors
    return { error: { kind: error instanceof Refusal ? error.kind : "Other", text: String(error) } };
  }
}

/** Names what a request waits for: requests of one handle keep their order, and a receive holds up no other. */
function turn(request) {
  const names = ["as", "handle", "producer", "consumer", "reader", "view", "transaction", "client"];
  const name = names.find((each) => each in request);
  return `${request[name]}${request.do.startsWith("receive") ? " receive" : ""}`;
}

const last = new Map(); // by turn, the promise of the latest answer
createInterface({ input: process.stdin })
  .on("line", (line) => {
    const request = JSON.parse(line);
    const told = Promise.resolve(last.get(turn(request))).then(() => answer(request));
    last.set(turn(request), told);
    told.then((fields) => process.stdout.write(`${JSON.stringify({ id: request.id, ...fields })}\n`));
  })
  .on("close", () => process.exit()); // the input has ended, and open clients do not matter any more
