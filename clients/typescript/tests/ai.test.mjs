// The middleware: what a model gets, what is stored, and what happens where memory fails. With the AI SDK, if it is there.

import assert from "node:assert/strict";
import { test } from "node:test";

import { chatMessages, seasonedMiddleware } from "../ai.mjs";
import { Seasoned } from "../index.mjs";
import { SLOW, served } from "./service.mjs";

const user = (text) => ({ role: "user", content: [{ type: "text", text }] });
const ASKED = [{ role: "system", content: "Be kind." }, user("My lamp arrived broken.")];
const TOOLS = [{ type: "function", name: "refund", inputSchema: { type: "object" } }];
const CALL = { type: "tool-call", toolCallId: "c1", toolName: "refund", input: '{"order":17}' };
const CALLED = { role: "assistant", content: [{ ...CALL, input: { order: 17 } }] };
const result = (output) => ({ role: "tool", content: [{ type: "tool-result", toolCallId: "c1", toolName: "refund", output }] });
const DONE = result({ type: "json", value: { done: true } });
const TEXT = { type: "text", text: "It is refunded." };

// Ask a scripted model through a middleware, as wrapLanguageModel does; return what it got and what came back.
async function ask(middleware, prompt, content, more = {}) {
  const params = await middleware.transformParams({ type: "generate", params: { prompt, tools: TOOLS, ...more }, model: { modelId: "m" } });
  const doGenerate = async () => ({ content, finishReason: "stop" });
  return { got: params.prompt, answer: await middleware.wrapGenerate({ doGenerate, params }) };
}

async function stream(middleware, prompt, parts) {
  const params = await middleware.transformParams({ type: "stream", params: { prompt, tools: TOOLS }, model: { modelId: "m" } });
  const doStream = async () => ({ stream: new ReadableStream({ start: (to) => (parts.forEach((one) => to.enqueue(one)), to.close()) }) });
  const heard = [];
  for await (const part of (await middleware.wrapStream({ doStream, params })).stream) heard.push(part);
  return heard;
}

test("middleware of the AI SDK, on the real service", async (t) => {
  const seasoned = await served(t, { holdout: false });
  const first = seasoned.episode("desk", { id: "talk-1" });
  const middleware = seasonedMiddleware(first);

  await t.test("a loop of calls is one episode, and the model gets the prompt as it is while nothing is known", async () => {
    const { got, answer } = await ask(middleware, ASKED, [CALL]);
    assert.deepEqual(got, ASKED);
    assert.deepEqual(answer.content, [CALL]);
    await ask(middleware, [...ASKED, CALLED, DONE], [TEXT]);
    await ask(middleware, [user("Give it a title.")], [{ type: "text", text: "Lamp" }]); // a side call
    const title = [{ role: "system", content: "Write a title." }, ASKED.findLast((one) => one.role === "user")];
    await ask(middleware, title, [{ type: "text", text: "Broken lamp" }]); // another one, on the same message
    assert.equal(await first.end({ reward: 1 }), "talk-1");
    assert.equal(first.model, "m");
  });

  await t.test("the next episode gets examples at the end of the last message, and notes which", async () => {
    const next = seasoned.episode("desk", { id: "talk-2" });
    const { got } = await ask(seasonedMiddleware(() => next), ASKED, [CALL]);
    assert.deepEqual(got.slice(0, -1), ASKED.slice(0, -1));
    const [own, block] = got.at(-1).content;
    assert.equal(own.text, "My lamp arrived broken.");
    assert.match(block.text, /^\[records of earlier episodes\]\n[^]*refund\(order=17\)[^]*\[end of records\]$/);
    await next.end({ reward: 1 });
    const { examples } = await seasoned.examples("desk", { state: "My lamp arrived broken." });
    assert.ok(examples.some((one) => one.n_shown === 1));
    const stored = await seasoned.search("My lamp arrived broken.", { threshold: 1 });
    assert.equal(stored.neighbors.length, 2, "the block is no part of the stored state");
  });

  await t.test("a block goes into every kind of tool result but a denial", async () => {
    for (const output of [
      { type: "text", value: "done" },
      { type: "json", value: { done: true } },
      { type: "error-text", value: "no" },
      { type: "error-json", value: { no: 1 } },
      { type: "content", value: [{ type: "text", text: "done" }] },
    ]) {
      const own = seasoned.episode("desk");
      const { got } = await ask(seasonedMiddleware(own), [...ASKED, CALLED, result(output)], [TEXT]);
      const changed = got.at(-1).content[0].output;
      assert.match(JSON.stringify(changed), /end of records/, output.type);
      assert.equal(changed.type.startsWith("error"), output.type.startsWith("error"));
    }
    const own = seasoned.episode("desk");
    const denied = [...ASKED, CALLED, result({ type: "execution-denied", reason: "not now" })];
    assert.deepEqual((await ask(seasonedMiddleware(own), denied, [TEXT])).got, denied);
  });

  await t.test("a stream passes part by part, and is stored when it is complete", async () => {
    const parts = [
      { type: "text-start", id: "1" },
      { type: "text-delta", id: "1", delta: "It is " },
      { type: "text-delta", id: "1", delta: "refunded." },
      { type: "text-end", id: "1" },
      CALL,
      { type: "finish", finishReason: "stop", usage: {} },
    ];
    const own = seasoned.episode("streams", { id: "stream-1" });
    assert.deepEqual(await stream(seasonedMiddleware(own, { mode: "observe" }), ASKED, parts), parts);
    await own.end({ reward: 1 });
    const broken = seasoned.episode("streams");
    await stream(seasonedMiddleware(broken, { mode: "observe" }), ASKED, parts.slice(0, 3));
    await assert.rejects(broken.end(), /without a step/);
  });

  await t.test("the control group gets no block", SLOW, async (t) => {
    const held = await served(t);
    for (let number = 0; number < 3; number += 1) {
      const own = held.episode("desk");
      const { got } = await ask(seasonedMiddleware(own), ASKED, [CALL]);
      const hasBlock = got.at(-1).content.length > 1;
      assert.ok(["treated", "control"].includes(own.arm) && (own.arm === "treated" || !hasBlock));
      await own.end({ reward: 1 });
    }
    const lift = await held.lift("desk");
    assert.equal(lift.n_treated + lift.n_control, 3);
  });
});

test("a call goes on without memory where that fails, unless it must not", async () => {
  const down = new Seasoned({ url: "http://127.0.0.1:9", retries: 0 });
  const seen = [];
  const { got } = await ask(seasonedMiddleware(down.episode("t"), { onError: (error) => seen.push(error.name) }), ASKED, [TEXT]);
  assert.deepEqual([got, seen], [ASKED, ["SeasonedConnectionError"]]);
  await assert.rejects(ask(seasonedMiddleware(down.episode("t"), { failOpen: false }), ASKED, [TEXT]), { name: "SeasonedConnectionError" });

  const silent = new Seasoned({ fetch: () => new Promise(() => {}) });
  const began = Date.now();
  assert.deepEqual((await ask(seasonedMiddleware(silent.episode("t"), { timeoutMs: 50 }), ASKED, [TEXT])).got, ASKED);
  assert.ok(Date.now() - began < 5_000);
  const reason = new Error("the user left");
  const aborted = ask(seasonedMiddleware(silent.episode("t")), ASKED, [TEXT], { abortSignal: AbortSignal.abort(reason) });
  assert.equal(await aborted.catch((error) => error), reason);
});

test("a call whose episode cannot be found goes on without one, unless it must not", async () => {
  const seen = [];
  const lost = new Error("no such ticket");
  const find = async () => {
    throw lost;
  };
  for (const mode of ["examples", "observe"]) {
    const { got, answer } = await ask(seasonedMiddleware(find, { mode, onError: (error) => seen.push(error) }), ASKED, [TEXT]);
    assert.deepEqual([got, answer.content], [ASKED, [TEXT]]);
  }
  assert.deepEqual(seen, [lost, lost]);
  assert.equal(await ask(seasonedMiddleware(find, { failOpen: false }), ASKED, [TEXT]).catch((error) => error), lost);
  const unknown = [{ role: "user", content: 7 }]; // a prompt of a later version of the SDK
  const silent = new Seasoned({ fetch: () => new Promise(() => {}) });
  assert.deepEqual((await ask(seasonedMiddleware(silent.episode("t")), unknown, [TEXT])).got, unknown);
});

test("a call without an episode passes, and an unknown mode is refused", async () => {
  assert.deepEqual((await ask(seasonedMiddleware(() => undefined), ASKED, [TEXT])).got, ASKED);
  assert.throws(() => seasonedMiddleware(null, { mode: "steer" }), /a mode is examples, advise, observe/);
});

test("a prompt becomes messages of Chat Completions", () => {
  const prompt = [
    ...ASKED,
    { role: "user", content: [{ type: "text", text: "See:" }, { type: "file", mediaType: "image/png", data: "AAAA" }] },
    { role: "assistant", content: [{ type: "reasoning", text: "hm" }, { type: "text", text: "Let me see." }, ...CALLED.content] },
    DONE,
    result({ type: "content", value: [{ type: "text", text: "a" }, { type: "image-data", data: "AAAA" }] }),
    { role: "assistant", content: [] },
  ];
  assert.deepEqual(chatMessages(prompt), [
    { role: "system", content: "Be kind." },
    { role: "user", content: "My lamp arrived broken." },
    { role: "user", content: "See:\n[file image/png]" },
    { role: "assistant", content: "Let me see.", tool_calls: [{ id: "c1", type: "function", function: { name: "refund", arguments: '{"order":17}' } }] },
    { role: "tool", tool_call_id: "c1", content: '{"done":true}' },
    { role: "tool", tool_call_id: "c1", content: "a\n[image-data]" },
    { role: "assistant", content: "" },
  ]);
});

// Of each version of the AI SDK: how its providers say why a model stopped, and what it used.
const total = (tokens) => ({ total: tokens });
const SDKS = [
  { name: "ai-5", specificationVersion: "v2", finish: (unified) => unified, usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2 } },
  { name: "ai", specificationVersion: "v3", finish: (unified) => ({ unified, raw: undefined }), usage: { inputTokens: total(1), outputTokens: total(1) } },
  { name: "ai-7", specificationVersion: "v4", finish: (unified) => ({ unified, raw: undefined }), usage: { inputTokens: total(1), outputTokens: total(1) } },
];

for (const { name, specificationVersion, finish, usage } of SDKS) {
  const sdk = await import(name).catch(() => undefined);
  const skip = sdk === undefined && `the package ${name} is not installed: make test-typescript`;
  test(`wrapLanguageModel of ${name} runs a loop of tools, whole and streamed`, { skip }, async (t) => {
    const Model = (await import(`${name}/test`))[`MockLanguageModel${specificationVersion.toUpperCase()}`];
    const seasoned = await served(t, { holdout: false });
    const prompts = [];
    const script = () => {
      const answers = [[CALL], [TEXT]];
      const content = (prompt) => (prompts.push(prompt), answers.shift());
      const reason = (parts) => finish(parts[0].type === "tool-call" ? "tool-calls" : "stop");
      return new Model({
        doGenerate: async ({ prompt }) => {
          const parts = content(prompt);
          return { content: parts, finishReason: reason(parts), usage, warnings: [] };
        },
        doStream: async ({ prompt }) => {
          const parts = content(prompt);
          const said = parts.flatMap((one) => (one.type === "text" ? [{ type: "text-start", id: "1" }, { type: "text-delta", id: "1", delta: one.text }, { type: "text-end", id: "1" }] : [one]));
          return { stream: sdk.simulateReadableStream({ chunks: [...said, { type: "finish", finishReason: reason(parts), usage }] }) };
        },
      });
    };
    const refund = sdk.tool({ inputSchema: sdk.jsonSchema({ type: "object", properties: { order: { type: "number" } } }), execute: async () => ({ done: true }) });
    for (const how of ["generateText", "streamText"]) {
      const episode = seasoned.episode("desk", { id: how });
      const model = sdk.wrapLanguageModel({ model: script(), middleware: seasonedMiddleware(episode, { specificationVersion }) });
      const options = { model, prompt: "My lamp arrived broken.", tools: { refund }, stopWhen: sdk.stepCountIs(3) };
      const text = how === "generateText" ? (await sdk.generateText(options)).text : await sdk.streamText(options).text;
      assert.equal(text, TEXT.text);
      assert.equal(await episode.end({ reward: 1 }), how);
    }
    const stored = await seasoned.search("My lamp arrived broken.", { threshold: 1 });
    assert.deepEqual(stored.neighbors.map((one) => one.episode_id).sort(), ["generateText", "streamText"]);
    assert.match(JSON.stringify(prompts[2].at(-1)), /end of records/);
  });
}
