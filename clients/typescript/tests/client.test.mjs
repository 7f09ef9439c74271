// Each method of the client, against the real service.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Seasoned, SeasonedError, SeasonedRequestError } from "../index.mjs";
import { SLOW, served } from "./service.mjs";

test("client of a service without a holdout", async (t) => {
  const seasoned = await served(t, { holdout: false });

  await t.test("a decision is learned from, by the right option, a reward or a thumb", async () => {
    const how = { question: "desk", instructions: "Whose ticket is it?", subject: "customer-7", model: "m" };
    const first = await seasoned.decide("my lamp is broken", ["sales", "refunds"], { ...how, probabilities: { sales: 0.8, refunds: 0.2 } });
    assert.equal(first.mode, "base");
    assert.ok(Math.abs(first.base.sales - 0.8) < 1e-9);
    for (const said of [{ right: "refunds" }, { right: "refunds", author: "ann" }, { right: "refunds" }, { right: "refunds" }]) {
      const decision = await seasoned.decide("my lamp is broken", ["sales", "refunds"], how);
      const { id } = await seasoned.feedback(decision, said);
      assert.ok(id);
    }
    const shifted = await seasoned.decide("my lamp is broken", ["sales", "refunds"], how);
    assert.equal(shifted.mode, "memory");
    assert.ok(shifted.probabilities.refunds > 0.8, JSON.stringify(shifted.probabilities));
    await seasoned.feedback(shifted, 0.5);
    await seasoned.feedback(shifted.id, true, { author: "bob" });
    const { id } = await seasoned.feedback(shifted, { kind: "score", value: 4, low: 0, high: 5 });
    assert.deepEqual(await seasoned.revoke(id), { revoked: id });
  });

  await t.test("an episode of recorded steps is stored whole, and shows up in advice, examples and search", async () => {
    for (let number = 0; number < 4; number += 1) {
      for (const [action, reward] of [["pay", 1], ["back", 0]]) {
        const episode = seasoned.episode("checkout", { model: "m" });
        episode.record("page:cart total:12", action, { reward });
        assert.equal(await episode.end({ final_state: "page:done" }), episode.id);
      }
    }
    const advice = await seasoned.advice("page:cart total:12", { actions: ["pay", "back"], task: "checkout" });
    assert.match(advice.text, /prefer "pay"/);
    assert.deepEqual(advice.evidence, { steps: 8, states: 1 });
    const found = await seasoned.examples("checkout", { state: "page:cart total:12", budget_tokens: 300 });
    assert.match(found.text, /Action: pay/);
    const { neighbors } = await seasoned.search("page:cart total:12", { k: 3 });
    assert.equal(neighbors.length, 3);

    const shown = seasoned.episode("checkout");
    const decision = await shown.decide("page:cart total:12", ["back", "wait"], { admissible: "any", seed: 1 });
    assert.ok("pay" in decision.probabilities && decision.id === null);
    shown.record("page:cart total:12", decision, { shown: found.shown });
    await shown.end({ reward: 1 });
    const again = await seasoned.examples("checkout", { state: "page:cart total:12" });
    assert.equal(again.examples[0].n_shown, 1);
  });

  await t.test("an episode that nobody rated awaits feedback", async () => {
    const episode = seasoned.episode("unrated");
    const decision = await episode.decide({ total: 1e-7 }, ["pay", "back"]);
    episode.record({ total: 1e-7 }, decision);
    await episode.end();
    assert.deepEqual((await seasoned.search('{"total":1e-07}', { threshold: 1 })).neighbors, []);
    await episode.feedback(1);
    const [neighbor] = (await seasoned.search('{"total":1e-07}', { threshold: 1 })).neighbors;
    assert.deepEqual([neighbor.return, neighbor.action], [1, decision.action]);
    const other = seasoned.episode("unrated");
    other.record("s1", "a");
    other.record("s2", "b");
    await other.end({ ending: "truncated" });
    await other.feedback({ up: false, step: 0 });
    const reward = async () => (await seasoned.search("s1", { threshold: 1 })).neighbors[0].reward;
    assert.equal(await reward(), -1);
    await other.feedback(0.25, { step: 0, author: "ann" });
    assert.equal(await reward(), -0.75);
    await seasoned.feedback(other, { reward: 0.5, step: 0 }, { author: "ann" });
    assert.equal(await reward(), -0.5);
    await assert.rejects(other.feedback(1, { step: 2 }), { name: "SeasonedRequestError", status: 404 });
  });

  await t.test("a conversation is stored, and recalled", async () => {
    const user = { role: "user", content: "Where is order 17?" };
    const call = { id: "c1", type: "function", function: { name: "track", arguments: '{"order":17}' } };
    const messages = [user, { role: "assistant", content: null, tool_calls: [call] }];
    assert.deepEqual(await seasoned.transcript(messages, { id: "talk-1", task: "mail", reward: 1 }), { id: "talk-1", steps: 1 });
    const found = await seasoned.recall([user], { task: "mail", tools: ["track"] });
    assert.match(found.block, /track\(order=17\)/);
    assert.deepEqual(found.shown, [["talk-1", 0]]);
  });

  await t.test("what is repeated is stored once", async () => {
    const record = { id: "twice", task: "t", steps: [{ state: "only here", action: "a", reward: 1 }] };
    assert.deepEqual(await seasoned.record(record), await seasoned.record(record));
    await assert.rejects(seasoned.record({ ...record, task: "other" }), { name: "SeasonedRequestError", status: 409 });
    const episode = seasoned.episode("t", { id: "end-twice" });
    episode.record("s", "a", { reward: 1 });
    assert.deepEqual(await Promise.all([episode.end(), episode.end()]), ["end-twice", "end-twice"]);
    assert.throws(() => episode.record("s", "b"), /after the end/);
  });

  await t.test("a block that is left without an end() has an aborted episode, and an end() that failed is repeated", async () => {
    const dispose = (episode) => episode[Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose")]();
    const left = seasoned.episode("left");
    left.record("only in a block that was left", "a", { reward: 1 });
    await dispose(left);
    const talked = seasoned.episode("left");
    talked.converse([{ role: "user", content: "only in a talk that was left" }], { role: "assistant", content: "hello" });
    await dispose(talked);
    const { neighbors } = await seasoned.search("only in a block that was left");
    assert.ok(!neighbors.some((one) => one.state.includes("was left")), "it is no evidence");

    const ended = seasoned.episode("left");
    ended.record("a block that ended", "a");
    await assert.rejects(ended.end({ reward: 1, signal: AbortSignal.abort(new Error("no service")) }), /no service/);
    await dispose(ended);
    const [found] = (await seasoned.search("a block that ended", { threshold: 1 })).neighbors;
    assert.deepEqual([found.episode_id, found.reward], [ended.id, 1]);
    await dispose(seasoned.episode("nothing recorded"));
  });

  await t.test("a refusal is an error with the value, the rule and the next step", async () => {
    const error = await seasoned.decide("s", ["a"], { probabilites: { a: 1 } }).catch((one) => one);
    assert.ok(error instanceof SeasonedRequestError && error instanceof SeasonedError);
    assert.deepEqual([error.status, error.kind], [400, "InputError"]);
    assert.match(error.message, /'probabilites'.*Did you mean 'probabilities'\?/);
    assert.deepEqual([typeof error.seen, typeof error.rule, typeof error.next], ["string", "string", "string"]);
    await assert.rejects(seasoned.feedback("none", 1), { status: 404, kind: "NotFoundError" });
    await assert.rejects(seasoned.lift("none"), { status: 404 });
    const denied = new Seasoned({ url: seasoned.url, token: "a-wrong-token-of-enough-characters" });
    await assert.rejects(denied.advice("s"), { status: 401, kind: "Unauthorized" });
    const elsewhere = new Seasoned({ url: seasoned.url, token: seasoned.headers["x-seasoned-token"], namespace: "none" });
    await assert.rejects(elsewhere.advice("s"), { status: 404 });
  });

  await t.test("an episode without a step, or with both forms, is refused and can be mended", async () => {
    const empty = seasoned.episode("t");
    await assert.rejects(empty.end(), /an episode without a step/);
    empty.record("s", "a", { reward: 0 });
    empty.converse([{ role: "user", content: "hi" }], { role: "assistant", content: "hello" });
    await assert.rejects(empty.end(), /steps and a conversation/);
    assert.throws(() => empty.record({ no: "text" }, "a"), /state/);
    assert.throws(() => empty.record("s", " "), /action/);
  });
});

test("the holdout gives each episode one arm, and the lift counts it", SLOW, async (t) => {
  const seasoned = await served(t, { bounds: [0, 1] });
  const arms = [];
  for (let number = 0; number < 4; number += 1) {
    const episode = seasoned.episode("checkout");
    for (const state of ["page:cart", "page:pay"]) {
      const decision = await episode.decide(state, ["pay", "back"], { logprobs: { pay: -0.3, back: -1.4 } });
      assert.equal(decision.arm, episode.arm);
      episode.record(state, decision, { reward: 0.5 });
    }
    arms.push(episode.arm);
    await episode.end();
  }
  const lift = await seasoned.lift("checkout");
  const count = (arm) => arms.filter((one) => one === arm).length;
  assert.deepEqual([lift.n_treated, lift.n_control], [count("treated"), count("control")]);
  assert.deepEqual(await seasoned.lift(), [lift]);
});
