// Run scenarios, one a line: see matrix/python/lines.py.
"use strict";

const readline = require("node:readline");

const lines = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const write = (answer) => process.stdout.write(`${JSON.stringify(answer)}\n`);
const read = async () => JSON.parse((await lines.next()).value);

const scenarios = { ...require("./messages"), ...require("./acknowledging"), ...require("./topics") };
const { Sockets, Failure } = require("./support");

async function run(request) {
  const open = [];
  const cell = {
    ...request,
    /** Return sockets at a broker's URL, which close with the scenario. */
    sockets(url = request.http_url, options = {}) {
      open.push(new Sockets(url, options));
      return open.at(-1);
    },
    /** Ask for admin work on the topic: "unload" or "terminate". */
    async do(action) {
      write({ do: action });
      if (!(await read()).done) throw new Failure(`${action} was refused`);
    },
  };
  try {
    await scenarios[request.scenario](cell);
  } finally {
    await Promise.all(open.map((each) => each.close()));
  }
}

(async () => {
  for (let next = await lines.next(); !next.done; next = await lines.next()) {
    const start = performance.now();
    let reason;
    try {
      await run(JSON.parse(next.value));
    } catch (error) {
      console.error(error);
      reason = error instanceof Failure ? error.message : `${error}`;
    }
    const outcome = reason === undefined ? "pass" : "fail";
    write({ outcome, reason: reason ?? "", seconds: (performance.now() - start) / 1000 });
  }
})();
