// The client of a service: one method for each thing that an agent's loop asks of a memory.

import { SeasonedError } from "./errors.mjs";
import { Episode } from "./episode.mjs";
import { FixedAddress, Transport, checkedText } from "./transport.mjs";

const MOST_ID_CHARS = 256;

// What the answer of each address has at least; the client and its callers rely on it.
const FIELDS = {
  "/v1/decide": { action: "string", mode: "string", probabilities: "object" },
  "/v1/advice": { text: "string" },
  "/v1/examples": { text: "string", shown: "list" },
  "/v1/recall": { block: "string", shown: "list" },
  "/v1/episodes": { id: "string" },
  "/v1/transcripts": { id: "string" },
  "/v1/search": { neighbors: "list" },
  "/v1/feedback": { id: "string" },
  "/v1/lift": { families: "list" },
};

export class Seasoned {
  constructor({ url = "http://127.0.0.1:8710", token, ...options } = {}) {
    this._transport = new Transport(new FixedAddress(url, token), options);
  }

  // Start a service on a file, for this process alone: nothing else can reach it, and it ends with the process.
  static async local(path, options = {}) {
    checkedText("path", path);
    const { startProcess } = await import("#local").catch((cause) => {
      throw new SeasonedError("Seasoned.local", "a process of its own needs Node", "Pass { url } of a service.", { cause });
    });
    const { namespace, timeoutMs, retries, fetch, ...started } = options;
    const client = new Seasoned({ timeoutMs, retries, fetch });
    client._transport.address = await startProcess(path, { ...started, namespace });
    return client;
  }

  get url() {
    return this._transport.address.url;
  }

  // For a client of a model API that calls through the gateway with a key of its own.
  get headers() {
    const { token } = this._transport.address;
    return token === undefined ? {} : { "x-seasoned-token": token };
  }

  // The base URL for a client of a model API: its calls are one episode. The service needs an upstream server.
  baseURL(episodeId) {
    const id = checkedText("episode id", typeof episodeId === "string" ? episodeId : episodeId?.id);
    if (id.length > MOST_ID_CHARS || /^\.{1,2}$/.test(id) || /[\p{Cc}\p{Zl}\p{Zp}]/u.test(id)) {
      const rule = `an id in an address has at most ${MOST_ID_CHARS} printable characters, and is no dots`;
      throw new SeasonedError(`the id ${JSON.stringify(id.slice(0, 80))}`, rule, "Use another one.");
    }
    return `${this.url}/episodes/${encodeURIComponent(id)}/v1`;
  }

  episode(task, options = {}) {
    return new Episode(this, task, options);
  }

  decide(state, options, { signal, timeoutMs, ...more } = {}) {
    return this._post("/v1/decide", { state, options, ...more }, { signal, timeoutMs });
  }

  advice(state, { signal, timeoutMs, ...more } = {}) {
    return this._post("/v1/advice", { state, ...more }, { signal, timeoutMs, repeatable: true });
  }

  examples(task, { signal, timeoutMs, ...more } = {}) {
    return this._post("/v1/examples", { task, ...more }, { signal, timeoutMs, repeatable: true });
  }

  recall(messages, { signal, timeoutMs, ...more } = {}) {
    return this._post("/v1/recall", { messages, ...more }, { signal, timeoutMs, repeatable: true });
  }

  record(episode, { signal, timeoutMs } = {}) {
    return this._stored("/v1/episodes", episode, { signal, timeoutMs });
  }

  transcript(messages, { signal, timeoutMs, ...more } = {}) {
    return this._stored("/v1/transcripts", { messages, ...more }, { signal, timeoutMs });
  }

  search(state, { signal, timeoutMs, ...more } = {}) {
    return this._post("/v1/search", { state, ...more }, { signal, timeoutMs, repeatable: true });
  }

  // What came of a decision or an episode: a reward (number), a thumb (true or false), or an object such as { right }.
  async feedback(target, outcome, { signal, timeoutMs, ...more } = {}) {
    const id = checkedText("id", typeof target === "string" ? target : target?.id);
    const said = typeof outcome === "number" ? { reward: outcome } : typeof outcome === "boolean" ? { up: outcome } : outcome;
    if (said === null || typeof said !== "object") {
      throw new SeasonedError(`outcome = ${String(outcome)}`, "it is a number, true, false or an object", "Pass { right: OPTION }, for example.");
    }
    const step = said.step ?? more.step; // the steps of an episode are rated by its id
    const body = { [step === undefined ? "inference_id" : "episode_id"]: id, ...said, ...more };
    if (step !== undefined && typeof said.up === "boolean") body.kind ??= "thumbs";
    return this._stored("/v1/feedback", body, { signal, timeoutMs });
  }

  async revoke(feedbackId, { signal, timeoutMs } = {}) {
    const path = `/v1/feedback/${encodeURIComponent(checkedText("feedback id", feedbackId))}`;
    return this._transport.send("DELETE", path, { fields: { revoked: "string" }, signal, timeoutMs, repeatable: true });
  }

  async lift(family, { signal, timeoutMs } = {}) {
    const { families } = await this._transport.send("GET", "/v1/lift", { fields: FIELDS["/v1/lift"], query: { family }, signal, timeoutMs });
    return family === undefined ? families : families[0];
  }

  // Of a client from `local`: stop the service. Another service goes on.
  close() {
    return this._transport.address.close();
  }

  [Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose")]() {
    return this.close();
  }

  _post(path, body, options) {
    return this._transport.send("POST", path, { body, fields: FIELDS[path], ...options });
  }

  // With an id, a repetition changes nothing: each gets one.
  _stored(path, body, options) {
    return this._post(path, { ...body, id: body?.id ?? globalThis.crypto.randomUUID() }, { ...options, repeatable: true });
  }
}
