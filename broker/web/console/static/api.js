// Calls of the broker, and its streams of changes. Everything goes to the broker that sent this page.
import { useEffect, useState } from "./html.js";

const TOKEN = "pulsarium.token"; // in the tab's own storage, sent as a header, never in a URL
const AGAIN_MS = [1000, 2000, 4000, 8000, 15000]; // between attempts to reach the broker
const GET_AGAIN_MS = [300, 1000];

export const session = {
  get token() { return sessionStorage.getItem(TOKEN) || ""; },
  set token(value) { value ? sessionStorage.setItem(TOKEN, value) : sessionStorage.removeItem(TOKEN); },
};

class Refused extends Error {
  constructor(status, reason) {
    super(explained(status, reason));
    this.status = status;
    this.isTokenRefused = isTokenRefused(status, reason);
  }
}

// Pulsar answers 401 for two things with two remedies: to a caller whom it does not know, and to a role without a right.
const isTokenRefused = (status, reason) => status === 401 && ["Authentication required", "Unauthorized"].includes(reason);

function explained(status, reason) {
  if (status === 401 && !session.token) return `The broker asks who you are. Press “Sign in”, and enter a token. (401: ${reason})`;
  if (isTokenRefused(status, reason)) return `The broker does not accept your token. Sign in with another one. (401: ${reason})`;
  if (status === 401 || status === 403) return `Your role may not do this. Ask an administrator for the permission, or sign in with another token. (${status}: ${reason})`;
  if (status === 0) return `The broker at ${location.host} does not answer (${reason}). Is it running?`;
  return `${status}: ${reason}`;
}

function headersOf(more = {}) {
  const by = { "X-Pulsarium-By": "console", ...more };
  return session.token ? { Authorization: `Bearer ${session.token}`, ...by } : by;
}

// A body is a text of JSON, because numbers of 64 bits do not fit into those of JavaScript.
export async function send(method, path, body, more = {}) {
  const headers = headersOf(more);
  if (body !== undefined && !headers["Content-Type"]) headers["Content-Type"] = "application/json";
  let answer;
  try {
    answer = await fetch(path.replace(/^\//, ""), { method, headers, body, cache: "no-store" });
  } catch {
    throw new Refused(0, "no connection");
  }
  if (!answer.ok) throw await refusal(answer);
  return answer;
}

async function refusal(answer) {
  const text = await answer.text(), error = new Refused(answer.status, reasonOf(text, answer.statusText));
  try { Object.assign(error, { details: JSON.parse(text) }); } catch { /* a text */ }
  return error;
}

// What only asks is asked again when the connection was lost on the way.
export async function get(path) {
  for (const wait of GET_AGAIN_MS) {
    try {
      return await got(path);
    } catch (error) {
      if (error.status !== 0) throw error;
      await new Promise((over) => setTimeout(over, wait));
    }
  }
  return got(path);
}

async function got(path) {
  const text = await (await send("GET", path)).text();
  return text ? JSON.parse(text) : null;
}

function reasonOf(text, otherwise) {
  try {
    const found = JSON.parse(text);
    return found.reason || found.message || found.error || text;
  } catch {
    return text && !text.startsWith("<") ? text : otherwise;
  }
}

async function* events(path, signal) {
  const headers = headersOf({ Accept: "text/event-stream" });
  const answer = await fetch(path.replace(/^\//, ""), { headers, signal, cache: "no-store" });
  if (!answer.ok) throw await refusal(answer);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    text += value;
    for (let end; (end = text.indexOf("\n\n")) >= 0; text = text.slice(end + 2)) {
      const lines = text.slice(0, end).split("\n");
      const data = lines.find((line) => line.startsWith("data: "));
      if (data) yield [lines[0] === "event: refused" ? "refused" : "value", JSON.parse(data.slice(6))];
    }
  }
}

// The newest value of a stream, and the error that ended it. A broken stream is opened again. A page that nobody sees
// has none, because a browser has few connections for all tabs of a site.
export function useLive(path) {
  const [state, set] = useState({ path });
  useEffect(() => {
    let stop = new AbortController(), timer, failures = 0;
    const close = () => { stop.abort(); clearTimeout(timer); };
    const look = () => {
      close();
      stop = new AbortController();
      if (!document.hidden) open(stop);
    };
    const open = async (stop) => {
      let wait = AGAIN_MS[0];
      try {
        for await (const [kind, value] of events(path, stop.signal)) {
          if (kind === "refused") throw Object.assign(new Refused(value.status, value.reason), { details: value });
          failures = 0;
          set({ path, value, at: performance.now() });
        }
      } catch (error) {
        if (stop.signal.aborted) return;
        const told = error instanceof Refused ? error : Object.assign(new Refused(0, "no connection"), { hasBanner: true });
        wait = AGAIN_MS[Math.min(failures++, AGAIN_MS.length - 1)];
        set((old) => ({ ...old, path, error: told, againAt: Date.now() + wait }));
      }
      if (!stop.signal.aborted) timer = setTimeout(() => open(stop), wait);
    };
    set({ path });
    look();
    document.addEventListener("visibilitychange", look);
    addEventListener("pagehide", close);
    addEventListener("pageshow", look);
    return () => {
      close();
      document.removeEventListener("visibilitychange", look);
      removeEventListener("pagehide", close);
      removeEventListener("pageshow", look);
    };
  }, [path, session.token]);
  return state.path === path ? state : { path };
}

// The answer of GET, fetched again when a value in `again` changes.
export function useGet(path, again = []) {
  const [state, set] = useState({});
  useEffect(() => {
    let stale = false;
    if (!path) return;
    get(path).then((value) => stale || set({ path, value }), (error) => stale || set({ path, error }));
    return () => { stale = true; };
  }, [path, session.token, ...again]);
  return state.path === path ? state : {};
}

const allowed = new Map(); // by token, method and path

// Whether the role may make a call. The broker answers with the check that the call itself would have.
export async function mayCall(method, path) {
  const key = `${session.token} ${method} ${path}`;
  if (!allowed.has(key)) {
    const asked = send(method, path, undefined, { "X-Pulsarium-Check": "permission" });
    allowed.set(key, asked.then(() => true, (error) => error.status !== 401 && error.status !== 403));
  }
  return allowed.get(key);
}
