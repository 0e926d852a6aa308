// A broker as a process: the command, or a container of the image.
"use strict";

const { spawn } = require("node:child_process");
const { createServer } = require("node:net");
const { createInterface } = require("node:readline");

const START_LIMIT = 60_000; // milliseconds
const ENGINES = ["docker", "podman"];
const NONE =
  "no broker can start: put the command pulsarium on the PATH, or name it in PULSARIUM; " +
  "or install docker or podman, with the image pulsarium";

/** Returns the broker that PULSARIUM_SERVICE_URL and PULSARIUM_ADMIN_URL name, or starts one. */
async function start(options) {
  const { PULSARIUM_SERVICE_URL: serviceUrl, PULSARIUM_ADMIN_URL: adminUrl } = process.env;
  if (options.length === 0 && serviceUrl && adminUrl) return { serviceUrl, adminUrl, stop: async () => {} };
  for await (const command of commands()) {
    const started = await run([...command, ...options]);
    if (started) return started;
  }
  throw new Error(NONE);
}

/** Yields the commands that may serve, the best one first. */
async function* commands() {
  const serve = ["serve", "--with-parent", "--log-level", "warning"];
  const named = (process.env.PULSARIUM ?? "").split(" ").filter(Boolean);
  yield [...(named.length ? named : ["pulsarium"]), ...serve, "--port", "0", "--http-port", "0"];
  if (named.length) throw new Error(`PULSARIUM names ${named[0]}, which is not a command: correct or unset the variable`);
  // Clients are told the ports of the inside, so these are the same outside.
  const [port, httpPort] = [await freePort(), await freePort()];
  const published = [port, httpPort].flatMap((each) => ["--publish", `127.0.0.1:${each}:${each}`]);
  const inside = ["--host", "0.0.0.0", "--set", "advertisedAddress=127.0.0.1", "--port", port, "--http-port", httpPort];
  const image = process.env.PULSARIUM_IMAGE || "pulsarium";
  for (const engine of ENGINES)
    yield [engine, "run", "--rm", "--interactive", ...published, image, "pulsarium", ...serve, ...inside];
}

async function freePort() {
  const server = createServer();
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return String(port);
}

/** Runs a command until it is ready, and returns the broker; null when there is no such command. */
function run([program, ...args]) {
  return new Promise((resolve, reject) => {
    // The broker ends when the pipe on its standard input does: with this process at the latest.
    const child = spawn(program, args, { stdio: "pipe" });
    const late = setTimeout(() => child.kill("SIGKILL"), START_LIMIT);
    const ended = new Promise((end) => child.once("close", end));
    let log = "";
    child.stdin.on("error", () => {}); // it ended first
    child.stderr.on("data", (data) => (log += data));
    createInterface({ input: child.stdout }).on("line", (line) => {
      const ready = /^pulsarium ready (\S+) (\S+)/.exec(line);
      if (!ready) return;
      // A broker in a container listens on 0.0.0.0.
      const [serviceUrl, adminUrl] = ready.slice(1).map((url) => url.replace("0.0.0.0", "127.0.0.1"));
      clearTimeout(late);
      const stop = () => (child.stdin.end(), ended);
      resolve({ serviceUrl, adminUrl, stop });
    });
    child.once("error", (error) => {
      clearTimeout(late);
      error.code === "ENOENT" ? resolve(null) : reject(error);
    });
    ended.then(() => {
      clearTimeout(late);
      const what = `${program} ${args.join(" ")} ended before it served, or was not ready in a minute:\n${log}`;
      reject(new Error(what + advice(program)));
    });
  });
}

/** Returns what to do when a program serves no broker. */
function advice(program) {
  if (!ENGINES.includes(program)) return "";
  return (
    `a container needs the image: type \`${program} build -t pulsarium .\` in a checkout of Pulsarium, ` +
    "or put the command pulsarium on the PATH"
  );
}

module.exports = { start };
