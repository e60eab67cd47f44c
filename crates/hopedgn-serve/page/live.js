// The stream of /v1/live: one connection for the whole page, read by fetch because EventSource cannot send a token.

import { request } from "./api.js";

const KEEP = 3600; // messages: a quarter of an hour at the fastest

/** What charts show: one entry for each message, oldest first. */
export const past = [];

export const live = {
  latest: null, // the newest message
  shown: null, // the newest that was drawn: older than `latest` while paused
  paused: false,
  connected: false,
};

const listeners = new Set();
const stateListeners = new Set();

/** Calls `listener(message)` for the newest message now, if there is one, and for each to come while not paused. */
export function subscribe(listener) {
  listeners.add(listener);
  if (live.shown) listener(live.shown);
  return () => listeners.delete(listener);
}

/** Calls `listener()` when the connection breaks or comes back, at pause and resume, and at messages while paused. */
export function onState(listener) {
  stateListeners.add(listener);
  listener();
  return () => stateListeners.delete(listener);
}

const tellState = () => stateListeners.forEach((listener) => listener());

export function setPaused(paused) {
  live.paused = paused;
  if (!paused && live.latest) draw(live.latest);
  tellState();
}

function draw(message) {
  live.shown = message;
  for (const listener of [...listeners]) listener(message);
}

function take(message) {
  live.latest = message;
  past.push({ at: Date.now() / 1000, rate: message.events_per_second, latency: message.latency, events: message.events });
  if (past.length > KEEP) past.splice(0, past.length - KEEP);
  if (live.paused) tellState();
  else draw(message);
}

function setConnected(connected) {
  if (live.connected === connected) return;
  live.connected = connected;
  tellState();
}

/** Splits a stream of bytes into the data of server-sent events. */
async function* messages(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    text += value;
    for (;;) {
      const end = /\r?\n\r?\n/.exec(text);
      if (!end) break;
      const data = text.slice(0, end.index).split(/\r?\n/).filter((line) => line.startsWith("data:")).map((line) => line.slice(5).trimStart());
      text = text.slice(end.index + end[0].length);
      if (data.length) yield data.join("\n");
    }
  }
}

// A browser opens six connections to one server, for all of its tabs together. A page that is not visible gives its stream back: one in another
// tab, and one that the browser keeps for its back button.
const isSeen = () => document.visibilityState === "visible" && !isLeft;
let isLeft = false;
let leaveNow = () => {};
function onSeen() {
  if (!isSeen()) leaveNow();
}
addEventListener("pagehide", () => { isLeft = true; onSeen(); });
addEventListener("pageshow", () => { isLeft = false; });
document.addEventListener("visibilitychange", onSeen);

/** Resolves once the page is seen. */
function seen() {
  return new Promise((done) => {
    const check = () => { if (isSeen()) done(); };
    addEventListener("pageshow", check);
    document.addEventListener("visibilitychange", check);
    check();
  });
}

/** Reads for as long as the page is seen; pauses grow from 0.5 to 15 s while the server does not answer. */
export async function connect() {
  for (let wait = 0.5; ; wait = Math.min(15, wait * 2)) {
    await seen();
    const leave = new AbortController();
    leaveNow = () => leave.abort();
    // A connection can die without a word: the server sends about every second.
    let alarm;
    const heard = () => { clearTimeout(alarm); alarm = setTimeout(() => leave.abort(), 20000); };
    try {
      const response = await request("v1/live", { signal: leave.signal, headers: { Accept: "text/event-stream" } });
      heard();
      for await (const data of messages(response.body)) {
        heard();
        setConnected(true);
        wait = 0.5;
        take(JSON.parse(data));
      }
    } catch {
      // Broken off or refused: tried again below.
    }
    clearTimeout(alarm);
    setConnected(false);
    if (!isSeen()) continue;
    await new Promise((done) => setTimeout(done, wait * 1000 * (0.8 + 0.4 * Math.random())));
  }
}
