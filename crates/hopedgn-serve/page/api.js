// Requests to the server. Tokens live in this module's variables only: not in storage, not in addresses.

import { askToken } from "./token.js";

const tokens = { read: null, write: null };
export const setWriteToken = (token) => { tokens.write = token || null; };
export const hasWriteToken = () => tokens.write !== null;

export class ApiError extends Error {
  constructor(status, body) {
    super(body?.error?.message ?? `the server answered ${status}`);
    this.status = status;
    this.code = body?.error?.code ?? "";
  }
}

const pause = (ms, signal) => new Promise((done, fail) => {
  const timer = setTimeout(done, ms);
  signal?.addEventListener("abort", () => { clearTimeout(timer); fail(signal.reason); }, { once: true });
});

/** Sends a request; asks for a token at 401 and waits as long as the server says at 429 and 503, three times at most. */
export async function request(path, { body, headers, signal, write = false } = {}) {
  for (let attempt = 0; ; attempt += 1) {
    const token = (write && tokens.write) || tokens.read;
    const response = await fetch(path, {
      method: body === undefined ? "GET" : "POST",
      body: body === undefined ? undefined : JSON.stringify(body),
      headers: {
        ...(body === undefined ? {} : { "Content-Type": "application/json" }),
        ...(token ? { Authorization: `Bearer ${token}` } : {}),
        ...headers,
      },
      signal, cache: "no-store", credentials: "same-origin", redirect: "error",
    });
    if (response.ok) return response;
    const answer = await response.json().catch(() => null);
    const error = new ApiError(response.status, answer);
    if (response.status === 401 && !write) {
      // Many requests fail at once: they share one dialog, and those sent with an older token just try again.
      if (tokens.read === token) tokens.read = await askToken(token === null ? "" : error.message);
      continue;
    }
    if ((response.status === 429 || response.status === 503) && attempt < 3) {
      const seconds = Number(response.headers.get("Retry-After")) || 1;
      await pause(Math.min(seconds, 10) * 1000 + Math.random() * 300, signal);
      continue;
    }
    throw error;
  }
}

const get = async (path, parameters = {}, signal) => {
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(parameters)) if (value !== undefined && value !== null) query.set(key, String(value));
  const text = query.toString();
  return (await request(text ? `${path}?${text}` : path, { signal })).json();
};

/** Browsers resolve `.` and `..` in paths before they send them; those and the empty id go as a parameter. */
const IN_PATH = (id) => !["", ".", ".."].includes(String(id));

export const api = {
  status: (signal) => get("v1/status", {}, signal),
  nodes: (prefix, limit, signal) => get("v1/nodes", { prefix, limit }, signal),
  node: (id, { limit = 200, before } = {}, signal) => (IN_PATH(id)
    ? get(`v1/nodes/${encodeURIComponent(String(id))}`, { limit, before }, signal)
    : get("v1/node", { id, limit, before }, signal)),
  recommend: (src, { k = 10, time, unseen, reasons } = {}, signal) => get("v1/recommend",
    { src, k, time, exclude_seen: unseen ? "true" : undefined, reasons: reasons ? "true" : undefined }, signal),
  pair: (src, dst, { time, limit = 200 } = {}, signal) => get("v1/pair", { src, dst, time, limit }, signal),
  graph: (node, { other, time, limit, top } = {}, signal) => get("v1/graph", { node, other, time, limit, top }, signal),
  runs: (signal) => get("v1/runs", {}, signal),
  report: async (run, signal) => (await request(`v1/runs/${encodeURIComponent(run)}/report`, { signal })).text(),
  score: async (pairs, { explain = false, without } = {}, signal) => (await request("v1/score",
    { body: { pairs, explain, ...(without?.length ? { without } : {}) }, signal })).json(),
  add: async (event) => (await request("v1/events",
    { body: [event], write: true, headers: { "Idempotency-Key": unique() } })).json(),
};

/** randomUUID exists in secure contexts only; a server on another machine may be spoken to without TLS. */
function unique() {
  return Array.from(crypto.getRandomValues(new Uint32Array(4)), (n) => n.toString(16).padStart(8, "0")).join("");
}
