// An episode that this process records: it is stored as a whole at its end.

import { SeasonedError } from "./errors.mjs";
import { checkedText } from "./transport.mjs";

export class Episode {
  constructor(client, task, { id, model, subject } = {}) {
    this.client = client;
    this.task = checkedText("task", task);
    this.id = id === undefined ? globalThis.crypto.randomUUID() : checkedText("id", id);
    this.model = model;
    this.subject = subject;
    this.arm = undefined;
    this.policy = undefined;
    this._steps = [];
    this._isRated = false;
    this._messages = undefined;
    this._shown = new Map(); // by the number of the assistant's message
    this._ended = undefined;
    this._ending = undefined; // the options of the last end()
  }

  get baseURL() {
    return this.client.baseURL(this.id);
  }

  // A decision of the next step. Nothing is stored but the arm of the episode.
  async decide(state, options, more = {}) {
    this._checkRunning("decide");
    const place = { episode_id: this.id, step: this._steps.length, task: this.task };
    const decision = await this.client.decide(state, options, { model: this.model, ...more, ...place });
    this.arm = decision.arm ?? this.arm;
    this.policy ??= decision.policy;
    return decision;
  }

  advice(state, more = {}) {
    return this.client.advice(state, { task: this.task, step: this._steps.length, ...more });
  }

  examples(state, more = {}) {
    return this.client.examples(this.task, { state, ...more });
  }

  // Add an executed step: a decision, or the text of an action.
  record(state, decision, { reward, prior, propensity, shown } = {}) {
    this._checkRunning("record");
    const isText = typeof decision === "string";
    const action = checkedText("action", isText ? decision : decision?.action);
    const text = checkedText("state", typeof state === "string" ? state : (decision?.state ?? state));
    this._isRated ||= reward !== undefined;
    this._steps.push({
      state: text,
      action,
      reward: reward ?? 0,
      prior: prior ?? (isText ? undefined : decision.prior),
      propensity: propensity ?? (isText ? undefined : decision.propensity),
      shown,
    });
  }

  // Memory's block for the next call of a model, and its arm; see the middleware of the AI SDK.
  async recall(messages, more = {}) {
    this._checkRunning("recall");
    const found = await this.client.recall(messages, { task: this.task, model: this.model, ...more, episode_id: this.id });
    this.arm = found.arm ?? this.arm;
    return found;
  }

  // The conversation so far, with the model's answer as its last message. A later one replaces it, if it goes on from
  // it: a call about something else, such as a title, is left out.
  converse(messages, answer, shown = []) {
    this._checkRunning("converse");
    const asked = messages.map((one) => JSON.stringify(one));
    const system = asked.filter((_, at) => messages[at].role === "system").join();
    const rest = asked.filter((_, at) => messages[at].role !== "system");
    if (this._asked !== undefined) {
      const kept = this._asked;
      const isRepeated = rest.length === kept.rest.length && system === kept.system;
      if (!kept.rest.every((one, at) => one === rest[at]) || !(rest.length > kept.rest.length || isRepeated)) return;
    }
    this._asked = { system, rest };
    this._shown.set(messages.filter((one) => one.role === "assistant").length, shown);
    this._messages = [...messages, answer];
  }

  // Store the episode, and return its id. After an error it can be called again: what was stored is stored once.
  end({ reward, ending, final_state, awaits_feedback, signal, timeoutMs } = {}) {
    if (this._ended === undefined) this._ending = { reward, ending, final_state, awaits_feedback };
    this._ended ??= this._store(this._ending, { signal, timeoutMs }).catch((error) => {
      this._ended = undefined;
      throw error;
    });
    return this._ended;
  }

  feedback(outcome, more = {}) {
    return this.client.feedback(this.id, outcome, more);
  }

  // The end of a block with `await using`. JavaScript does not say whether an exception leaves the block, so that an
  // episode without an end() counts as aborted. An end() that failed is repeated as it was asked for.
  async [Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose")]() {
    if (this._steps.length > 0 || this._messages !== undefined) await this.end(this._ending ?? { ending: "aborted" });
  }

  async _store({ reward, ending, final_state, awaits_feedback }, options) {
    const isTalk = this._messages !== undefined;
    if (isTalk === this._steps.length > 0) {
      const seen = isTalk ? "an episode with steps and a conversation" : "an episode without a step";
      throw new SeasonedError(seen, "an episode has steps, or a conversation", "Record one of the two.");
    }
    const awaits = awaits_feedback ?? !(this._isRated || reward !== undefined);
    const about = { id: this.id, task: this.task, model: this.model, arm: this.arm, subject: this.subject };
    const body = { ...about, policy: this.policy, ending, awaits_feedback: awaits };
    if (isTalk) {
      let turn = 0;
      const withShown = (one) => (one.role === "assistant" ? { ...one, shown: this._shown.get(turn++) } : one);
      return (await this.client.transcript(this._messages.map(withShown), { ...body, reward, ...options })).id;
    }
    const steps = [...this._steps];
    if (reward !== undefined) steps[steps.length - 1] = { ...steps.at(-1), reward: steps.at(-1).reward + reward };
    return (await this.client.record({ ...body, steps, final_state }, options)).id;
  }

  _checkRunning(call) {
    if (this._ended === undefined) return;
    throw new SeasonedError(`${call}() after the end`, "an episode is stored once", "Begin another: seasoned.episode(task).");
  }
}
