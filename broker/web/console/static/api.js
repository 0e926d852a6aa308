// Calls of the broker, and its streams of changes. Everything goes to the broker that sent this page.
import { useEffect, useRef, useState } from "./preact.js";

const TOKEN = "pulsarium.token"; // in the tab's own storage, sent as a header, never in a URL
const AGAIN_MS = 2000;

export const session = {
  get token() { return sessionStorage.getItem(TOKEN) || ""; },
  set token(value) { value ? sessionStorage.setItem(TOKEN, value) : sessionStorage.removeItem(TOKEN); },
};

export class Refused extends Error {
  constructor(status, reason) {
    super(explained(status, reason));
    this.status = status;
  }
}

function explained(status, reason) {
  if (status === 401 && (!session.token || reason === "Authentication required")) {
    return `401: the broker asks who you are. Enter a token with “Sign in” at the top of the page. (${reason})`;
  }
  if (status === 401 || status === 403) {
    return `${status}: your role may not do this. Ask an administrator for the permission, or sign in with another token. (${reason})`;
  }
  return `${status}: ${reason}`;
}

function headersOf(more = {}) {
  return session.token ? { Authorization: `Bearer ${session.token}`, ...more } : more;
}

// A body is a text of JSON, because numbers of 64 bits do not fit into those of JavaScript.
export async function send(method, path, body, more = {}) {
  const headers = headersOf(more);
  if (body !== undefined && !headers["Content-Type"]) headers["Content-Type"] = "application/json";
  let answer;
  try {
    answer = await fetch(path.replace(/^\//, ""), { method, headers, body, cache: "no-store" });
  } catch {
    throw new Refused(0, "the broker does not answer; is it running?");
  }
  if (!answer.ok) throw new Refused(answer.status, reasonOf(await answer.text(), answer.statusText));
  return answer;
}

export async function get(path) {
  const text = await (await send("GET", path)).text();
  return text ? JSON.parse(text) : null;
}

function reasonOf(text, otherwise) {
  try {
    const found = JSON.parse(text);
    return found.reason || found.message || text;
  } catch {
    return text && !text.startsWith("<") ? text : otherwise;
  }
}

async function* events(path, signal) {
  const headers = headersOf({ Accept: "text/event-stream" });
  const answer = await fetch(path.replace(/^\//, ""), { headers, signal, cache: "no-store" });
  if (!answer.ok) throw new Refused(answer.status, reasonOf(await answer.text(), answer.statusText));
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
    let stop = new AbortController(), timer;
    const close = () => { stop.abort(); clearTimeout(timer); };
    const look = () => {
      close();
      stop = new AbortController();
      if (!document.hidden) open(stop);
    };
    const open = async (stop) => {
      try {
        for await (const [kind, value] of events(path, stop.signal)) {
          if (kind === "refused") throw new Refused(value.status, value.reason);
          set({ path, value, at: performance.now() });
        }
      } catch (error) {
        if (stop.signal.aborted) return;
        const told = error instanceof Refused ? error : new Refused(0, "the broker does not answer");
        set((old) => ({ ...old, path, error: told }));
      }
      if (!stop.signal.aborted) timer = setTimeout(() => open(stop), AGAIN_MS);
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

// Rates a second of counters, by their names, between two values of a stream.
export function useRates(at, counters) {
  const kept = useRef({ at: 0, counters: {}, rates: {} });
  const [, redraw] = useState(0);
  if (at && at !== kept.current.at) {
    const seconds = (at - kept.current.at) / 1000, rates = {};
    for (const [name, count] of Object.entries(counters)) {
      const before = kept.current.counters[name];
      rates[name] = before === undefined || !kept.current.at ? 0 : Math.max(0, count - before) / seconds;
    }
    kept.current = { at, counters, rates };
  }
  useEffect(() => {
    const timer = setTimeout(() => { kept.current.rates = {}; redraw((n) => n + 1); }, 3000);
    return () => clearTimeout(timer);
  }, [at]);
  return (name) => kept.current.rates[name] || 0;
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
