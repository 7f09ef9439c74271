// A service that is down, slow, busy, broken or something else; aborts and time limits; values that no request can have.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { test } from "node:test";
import { inspect } from "node:util";

import { Seasoned, SeasonedError } from "../index.mjs";

// Return a client of a server that answers by `answer(request, response, number)`.
async function client(t, answer, options = {}) {
  const seen = [];
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (text) => (body += text));
    request.on("end", () => {
      seen.push({ method: request.method, url: request.url, headers: request.headers, body });
      answer(request, response, seen.length);
    });
  });
  await new Promise((resume) => server.listen(0, "127.0.0.1", resume));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { seasoned: new Seasoned({ url: `http://127.0.0.1:${server.address().port}`, ...options }), seen, server };
}

const json = (response, status, document, headers = {}) => response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(document));
const BUSY = { error: "StoreBusyError", seen: "a lock", rule: "one writes at a time", next: "Send it again." };

test("a service that is down is a connection error that names the address and the command", async (t) => {
  const { seasoned, server } = await client(t, () => {});
  server.close();
  const error = await seasoned.advice("s").catch((one) => one);
  assert.equal(error.name, "SeasonedConnectionError");
  assert.match(error.message, /ECONNREFUSED.*seasoned serve/);
});

test("a busy service is asked again where that changes nothing, after the time that it names", async (t) => {
  const { seasoned, seen } = await client(t, (_, response, number) => (number < 3 ? json(response, 503, BUSY, { "retry-after": "0" }) : json(response, 200, { id: "e" })));
  assert.deepEqual(await seasoned.record({ task: "t", steps: [{ state: "s", action: "a" }] }), { id: "e" });
  const bodies = new Set(seen.map((one) => one.body));
  assert.equal(seen.length, 3);
  assert.equal(bodies.size, 1, "each repetition has the same id");
  assert.ok(JSON.parse([...bodies][0]).id);
});

test("a decision that may have been stored is not asked for again", async (t) => {
  const { seasoned, seen } = await client(t, (_, response) => json(response, 503, BUSY));
  await assert.rejects(seasoned.decide("s", ["a", "b"]), { name: "SeasonedServerError", status: 503, kind: "StoreBusyError" });
  assert.equal(seen.length, 1);
});

test("a connection that breaks off is an error, and a reading request is repeated", async (t) => {
  const { seasoned, seen } = await client(t, (request, response, number) => (number === 1 ? request.socket.destroy() : json(response, 200, { text: "" })));
  assert.deepEqual(await seasoned.advice("s"), { text: "" });
  assert.equal(seen.length, 2);
  const broken = await client(t, (request) => request.socket.destroy(), { retries: 0 });
  await assert.rejects(broken.seasoned.decide("s", ["a"]), { name: "SeasonedConnectionError" });
});

for (const [what, answer] of Object.entries({
  "no answer": () => {},
  "an answer that stops": (_, response) => response.writeHead(200, { "content-type": "application/json" }).write('{"text": '),
})) {
  test(`${what} is a timeout`, async (t) => {
    const { seasoned } = await client(t, answer, { timeoutMs: 80 });
    const error = await seasoned.advice("s").catch((one) => one);
    assert.equal(error.name, "SeasonedTimeoutError");
    assert.match(error.message, /POST \/v1\/advice.*80 ms/);
  });

  test(`${what} ends with the caller's signal, whose reason is the rejection`, async (t) => {
    const { seasoned } = await client(t, answer);
    const controller = new AbortController();
    const reason = new Error("the user left");
    setTimeout(() => controller.abort(reason), 40);
    assert.equal(await seasoned.advice("s", { signal: controller.signal }).catch((one) => one), reason);
    assert.equal(await seasoned.advice("s", { signal: AbortSignal.abort(reason) }).catch((one) => one), reason);
  });
}

test("a pause between repetitions is part of the time limit", async (t) => {
  const { seasoned } = await client(t, (_, response) => json(response, 503, BUSY, { "retry-after": "60" }), { timeoutMs: 100 });
  await assert.rejects(seasoned.advice("s"), { name: "SeasonedTimeoutError" });
});

for (const [what, answer, expected] of [
  ["a page of a proxy", (response) => response.writeHead(502, { "content-type": "text/html" }).end("<h1>Bad gateway</h1>"), { name: "SeasonedAnswerError", status: 502 }],
  ["a page in place of an answer", (response) => response.writeHead(200).end("<h1>Welcome</h1>"), { name: "SeasonedAnswerError", status: 200 }],
  ["an answer that is no object", (response) => json(response, 200, 7), { name: "SeasonedAnswerError", status: 200 }],
  ["a redirection", (response) => response.writeHead(302, { location: "http://127.0.0.1:1/" }).end(), { name: "SeasonedAnswerError", status: 302 }],
  ["an error of a model API", (response) => json(response, 429, { error: { message: "too fast", code: "slow_down" } }), { name: "SeasonedRequestError", status: 429, kind: "slow_down" }],
  ["an error of the service", (response) => json(response, 500, { ...BUSY, error: "IntegrityError" }), { name: "SeasonedServerError", status: 500, kind: "IntegrityError" }],
]) {
  test(`${what} is a typed error`, async (t) => {
    const { seasoned, seen } = await client(t, (_, response) => answer(response), { token: "a-token-of-enough-characters" });
    await assert.rejects(seasoned.advice("s"), expected);
    assert.equal(seen.length, 1);
    assert.equal(seen[0].headers.authorization, "Bearer a-token-of-enough-characters");
  });
}

const step = { state: "s", action: "a" };
for (const [method, ask, field] of [
  ["decide", (one) => one.decide("s", ["a"]), "action"],
  ["advice", (one) => one.advice("s"), "text"],
  ["examples", (one) => one.examples("t"), "text"],
  ["recall", (one) => one.recall([{ role: "user", content: "hi" }]), "block"],
  ["record", (one) => one.record({ task: "t", steps: [step] }), "id"],
  ["transcript", (one) => one.transcript([{ role: "user", content: "hi" }]), "id"],
  ["search", (one) => one.search("s"), "neighbors"],
  ["feedback", (one) => one.feedback("e", 1), "id"],
  ["revoke", (one) => one.revoke("f"), "revoked"],
  ["lift", (one) => one.lift(), "families"],
]) {
  test(`${method} refuses an answer without the field ${field}, or with another type`, async (t) => {
    const { seasoned, seen } = await client(t, (_, response, number) => json(response, 200, number === 1 ? {} : { [field]: 7 }));
    const expected = { name: "SeasonedAnswerError", status: 200 };
    await assert.rejects(ask(seasoned), { ...expected, message: new RegExp(`"${field}" is missing`) });
    await assert.rejects(ask(seasoned), { ...expected, message: new RegExp(`"${field}" is a number and no (string|list)`) });
    assert.equal(seen.length, 2, "nothing is repeated");
  });
}

test("an address that is refused is named without its password", () => {
  for (const url of ["http://user:secret@localhost", "http://:secret@localhost", "user:secret@localhost", "http://user:secret@:x", "http://localhost/?key=secret", "http://localhost/#secret"]) {
    assert.throws(
      () => new Seasoned({ url }),
      (error) => error instanceof SeasonedError && !inspect(error).includes("secret") && /url = .*\*\*\*/.test(error.message),
      url,
    );
  }
});

test("what no request can have is refused before it is sent", async (t) => {
  const { seasoned, seen } = await client(t, (_, response) => json(response, 200, {}));
  const circular = {};
  circular.self = circular;
  for (const wrong of [
    () => new Seasoned({ url: "localhost:8710" }),
    () => new Seasoned({ url: "ftp://localhost" }),
    () => new Seasoned({ url: "http://user:secret@localhost" }),
    () => new Seasoned({ url: 7 }),
    () => new Seasoned({ token: "short" }),
    () => new Seasoned({ token: "a token with blanks in it" }),
    () => new Seasoned({ timeoutMs: 0 }),
    () => new Seasoned({ timeoutMs: "soon" }),
    () => new Seasoned({ namespace: " " }),
    () => seasoned.episode(""),
    () => seasoned.baseURL(".."),
    () => seasoned.baseURL("a\nb"),
    () => seasoned.baseURL("x".repeat(257)),
  ]) {
    assert.throws(wrong, SeasonedError, String(wrong));
  }
  for (const wrong of [
    () => seasoned.advice(circular),
    () => seasoned.advice("s", { timeoutMs: -1 }),
    () => seasoned.feedback({ id: null }, 1),
    () => seasoned.feedback("e"),
    () => seasoned.feedback("e", "good"),
    () => seasoned.revoke(""),
    () => Seasoned.local(""),
  ]) {
    await assert.rejects(wrong, SeasonedError, String(wrong));
  }
  assert.equal(seen.length, 0);
});

test("addresses of a gateway name the episode", () => {
  const seasoned = new Seasoned({ url: "https://memory.example.com/desk/", token: "a-token-of-enough-characters" });
  assert.equal(seasoned.baseURL("run 7/v1/x"), "https://memory.example.com/desk/episodes/run%207%2Fv1%2Fx/v1");
  assert.equal(seasoned.episode("t", { id: "run-8" }).baseURL, "https://memory.example.com/desk/episodes/run-8/v1");
  assert.deepEqual(seasoned.headers, { "x-seasoned-token": "a-token-of-enough-characters" });
});

test("queries and namespaces are in the address", async (t) => {
  const { seasoned, seen } = await client(t, (_, response) => json(response, 200, { families: [{ family: "a b" }] }), { namespace: "shop & desk" });
  assert.deepEqual(await seasoned.lift("a b"), { family: "a b" });
  assert.equal(seen[0].url, "/v1/lift?namespace=shop+%26+desk&family=a+b");
});
