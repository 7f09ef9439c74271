// Requests to a service: JSON both ways, a time limit, the caller's abort, and repetition where that changes nothing.

import { SeasonedAnswerError, SeasonedConnectionError, SeasonedError, SeasonedTimeoutError, errorOfAnswer, errorOfField } from "./errors.mjs";

const PAUSE_MS = 100;
const MOST_PAUSE_MS = 2_000;
const BUSY = 503;

// Where a service is, if its address stays the same. `SeasonedProcess` in local.mjs is the other kind.
export class FixedAddress {
  constructor(url, token) {
    this.url = checkedUrl(url);
    this.token = checkedToken(token);
  }

  async find() {
    return this;
  }

  async close() {}
}

export class Transport {
  constructor(address, { namespace, timeoutMs = 10_000, retries = 2, fetch: ownFetch } = {}) {
    this.address = address;
    this.namespace = namespace === undefined ? undefined : checkedText("namespace", namespace);
    this.timeoutMs = checkedNumber("timeoutMs", timeoutMs, 1);
    this.retries = checkedNumber("retries", retries, 0);
    this.fetch = ownFetch ?? globalThis.fetch?.bind(globalThis);
    if (typeof this.fetch !== "function") {
      throw new SeasonedError("no fetch", "the client needs the web's fetch", "Use Node 18 or newer, or pass { fetch }.");
    }
  }

  // Return the document of an answer, which has these `fields` with values of these types. `repeatable`: the same request
  // again changes nothing, so that it may be repeated.
  async send(method, path, { body, fields, query = {}, repeatable = method === "GET", signal, timeoutMs = this.timeoutMs } = {}) {
    const limit = deadline(checkedNumber("timeoutMs", timeoutMs, 1), signal);
    const text = body === undefined ? undefined : encoded(body);
    try {
      for (let attempt = 0; ; attempt += 1) {
        const outcome = await this.attempt(method, path, query, text, limit);
        if (!(outcome instanceof Error)) return checkedAnswer(outcome, fields, `${method} ${path}`);
        const mayRepeat = outcome.wasNotSent || (repeatable && (outcome.status ?? BUSY) === BUSY);
        if (!mayRepeat || attempt >= this.retries || outcome instanceof SeasonedAnswerError) throw outcome;
        const asked = 1_000 * (outcome.retryAfter ?? 0) || PAUSE_MS * 2 ** attempt;
        await limit.race(new Promise((resume) => setTimeout(resume, Math.min(asked, MOST_PAUSE_MS))));
      }
    } catch (error) {
      throw limit.reason(error, `${method} ${path}`, timeoutMs);
    } finally {
      limit.end();
    }
  }

  // Return the document, or the error of one attempt; reject when the limit is reached.
  async attempt(method, path, query, text, limit) {
    const { url, token } = await limit.race(this.address.find());
    const target = new URL(url + path);
    for (const [name, value] of Object.entries({ namespace: this.namespace, ...query })) {
      if (value !== undefined) target.searchParams.set(name, value);
    }
    const headers = { accept: "application/json" };
    if (text !== undefined) headers["content-type"] = "application/json";
    if (token !== undefined) headers.authorization = `Bearer ${token}`;
    let response, answered;
    try {
      const options = { method, headers, body: text, redirect: "manual", signal: limit.signal };
      response = await limit.race(this.fetch(target.href, options));
      answered = await limit.race(response.text());
    } catch (error) {
      if (limit.isOver()) throw error;
      return unreachable(url, error);
    }
    let document;
    try {
      document = JSON.parse(answered);
    } catch {
      document = undefined;
    }
    if (response.ok && document !== null && typeof document === "object") return document;
    const error = errorOfAnswer(response.status, document, `${method} ${path}`);
    const retryAfter = Number(response.headers.get("retry-after"));
    return Object.assign(error, { retryAfter: Number.isFinite(retryAfter) ? retryAfter : 0 });
  }
}

function checkedAnswer(document, fields, where) {
  for (const [name, type] of Object.entries(fields)) {
    const value = document[name];
    if (type === "list" ? !Array.isArray(value) : value === null || typeof value !== type) throw errorOfField(name, type, value, where);
  }
  return document;
}

function unreachable(url, cause) {
  const code = cause?.cause?.code ?? cause?.code;
  const error = new SeasonedConnectionError(
    `no connection to ${url}${code === undefined ? "" : ` (${code})`}`,
    "a seasoned service answers there",
    "Start one: seasoned serve agent.db --create",
    { kind: "ConnectionError", cause },
  );
  return Object.assign(error, { wasNotSent: code === "ECONNREFUSED" });
}

// A time limit together with the caller's signal. AbortSignal.any is not everywhere yet.
function deadline(timeoutMs, signal) {
  const controller = new AbortController();
  let ending;
  const over = new Promise((_, reject) => {
    ending = (reason) => {
      controller.abort(reason);
      reject(reason);
    };
  });
  over.catch(() => {});
  const late = new Error("late");
  const timer = setTimeout(() => ending(late), timeoutMs);
  const aborted = () => ending(signal.reason);
  if (signal?.aborted) aborted();
  signal?.addEventListener("abort", aborted);
  return {
    signal: controller.signal,
    isOver: () => controller.signal.aborted,
    race: (work) => Promise.race([over, work]),
    reason(error, what, limitMs) {
      if (signal?.aborted) return signal.reason;
      if (!controller.signal.aborted || error instanceof SeasonedError) return error;
      const rule = `the service answers within ${limitMs} ms`;
      const next = "Send it again with a larger timeoutMs: with an id, a repetition changes nothing.";
      return new SeasonedTimeoutError(`no answer to ${what}`, rule, next, { kind: "TimeoutError", cause: error });
    },
    end() {
      clearTimeout(timer);
      signal?.removeEventListener("abort", aborted);
    },
  };
}

function encoded(body) {
  try {
    return JSON.stringify(body);
  } catch (cause) {
    throw new SeasonedError(`a body that is no JSON (${cause.message})`, "a request is JSON", "Send plain values.", { cause });
  }
}

export function checkedUrl(url) {
  // Errors are logged: what may be a secret in an address is not in the message, nor is the error of URL, which has all of it.
  const seen = `url = ${JSON.stringify(String(url).replace(/^[^]*@/, "***@").replace(/[?#][^]*$/, "?***").slice(0, 80))}`;
  let parsed;
  try {
    parsed = new URL(url);
  } catch {
    throw new SeasonedError(seen, "it is the address of a service", 'Pass "http://127.0.0.1:8710".');
  }
  const hasMore = parsed.username || parsed.password || parsed.search || parsed.hash;
  if (!["http:", "https:"].includes(parsed.protocol) || hasMore) {
    throw new SeasonedError(seen, "it is http or https, without a name, a password, a query or a fragment", "Pass the token as { token }.");
  }
  return parsed.href.replace(/\/+$/, "");
}

function checkedToken(token) {
  if (token === undefined || (typeof token === "string" && /^[!-~]{16,4096}$/.test(token))) return token;
  throw new SeasonedError("a token of another form", "a token has at least 16 printable ASCII characters, no blanks", "Pass that of the --token-file.");
}

export function checkedText(name, value) {
  if (typeof value === "string" && value.trim() !== "") return value;
  throw new SeasonedError(`${name} = ${String(JSON.stringify(value)).slice(0, 80)}`, `${name} is a text that is not blank`, "Pass one.");
}

function checkedNumber(name, value, least) {
  if (typeof value === "number" && value >= least && value < 2 ** 31) return value;
  throw new SeasonedError(`${name} = ${String(value)}`, `${name} is a number from ${least} on`, "Pass one.");
}
