// A service of the client's own: its start, its end, and a crash of either side.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readdir } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { test } from "node:test";

import { Seasoned } from "../index.mjs";
import { COMMAND, SLOW, folder, isRunning, served, until } from "./service.mjs";

const INDEX = fileURLToPath(new URL("../index.mjs", import.meta.url));

const processOf = (seasoned) => seasoned._transport.address._child;

test("a service that is killed is started again, and has what was stored", SLOW, async (t) => {
  const own = await folder(t);
  const before = process.env.TMPDIR;
  process.env.TMPDIR = own;
  t.after(() => (before === undefined ? delete process.env.TMPDIR : (process.env.TMPDIR = before)));
  const seasoned = await served(t, { holdout: false });
  const base = seasoned.baseURL("run-7");
  const step = { state: "page:cart", action: "pay", reward: 1 };
  await seasoned.record({ id: "before", task: "t", steps: [step] });
  const killed = processOf(seasoned);
  killed.kill("SIGKILL");
  const { neighbors } = await seasoned.search("page:cart", { timeoutMs: 60_000 });
  assert.deepEqual(neighbors.map((one) => one.episode_id), ["before"]);
  const restarted = processOf(seasoned);
  assert.notEqual(restarted.pid, killed.pid);
  const left = (await readdir(own)).filter((name) => !name.startsWith("seasoned-test-"));
  assert.deepEqual(left, [], "no token is left behind");
  assert.equal(seasoned.baseURL("run-7"), base, "clients of model APIs find it where it was");

  const warnings = [];
  process.on("warning", (warning) => warnings.push(warning.message));
  restarted.kill("SIGKILL");
  await until(() => processOf(seasoned) === undefined, "the end of the service");
  const other = createServer().listen(Number(new URL(base).port), "127.0.0.1");
  t.after(() => other.close());
  await seasoned.advice("s", { timeoutMs: 60_000 });
  assert.notEqual(seasoned.baseURL("run-7"), base);
  assert.match(warnings.join(), /was taken while the service did not run.*Call baseURL again/);
  const last = processOf(seasoned);

  await seasoned.close();
  await seasoned.close();
  assert.equal(isRunning(last.pid), false);
  await assert.rejects(seasoned.advice("s"), /after close\(\)/);
});

// Run a script of another Node, which opens a memory as `seasoned` and says the process id of its service.
async function script(t, text) {
  const path = join(await folder(t), "agent.db");
  const head = `import { Seasoned } from ${JSON.stringify(`file://${INDEX}`)};
    const seasoned = await Seasoned.local(${JSON.stringify(path)}, { command: ${JSON.stringify(COMMAND)} });
    console.log(seasoned._transport.address._child.pid);`;
  const node = spawn(process.execPath, ["--input-type=module", "-e", `${head}\n${text}`], { stdio: ["ignore", "pipe", "inherit"] });
  let said = "";
  node.stdout.on("data", (part) => (said += part));
  await until(() => said.includes("\n"), "the service of the script");
  const pid = Number(said);
  assert.ok(isRunning(pid));
  return { node, pid };
}

test("the service ends with a process that is killed", SLOW, async (t) => {
  const { node, pid } = await script(t, "setInterval(() => {}, 1000);");
  node.kill("SIGKILL");
  await until(() => !isRunning(pid), "the end of the service");
});

test("a script ends without close(), and its service with it", SLOW, async (t) => {
  const { node, pid } = await script(t, "await seasoned.advice('s');");
  await until(() => node.exitCode !== null, "the end of the script");
  assert.equal(node.exitCode, 0);
  await until(() => !isRunning(pid), "the end of the service");
});

test("a path that starts with a dash is a path", SLOW, async (t) => {
  const [own, before] = [await folder(t), process.cwd()];
  process.chdir(own);
  t.after(() => process.chdir(before));
  const seasoned = await Seasoned.local("--help.db", { command: COMMAND });
  await seasoned.close();
  assert.ok((await readdir(own)).includes("--help.db"));
});

test("what cannot be started says why, and what to do", async (t) => {
  const path = join(await folder(t), "agent.db");
  for (const [options, says] of [
    [{ command: ["no-such-seasoned"] }, /no-such-seasoned cannot be run \(ENOENT\).*In a clone of the repository: pip install '\.\[serve\]'/],
    [{ command: [process.execPath, "-e", "console.error('no such module'); process.exit(3)"] }, /ended at its start with 3 \(no such module\)/],
    [{ command: [process.execPath, "-e", "setInterval(() => {}, 1000)"], startMs: 300 }, /no address within 300 ms/],
    [{ port: 8710 }, /the option port: a local service has args, bounds/],
  ]) {
    await assert.rejects(Seasoned.local(path, options), says);
  }
});

test("a service that ends again and again is not started for ever", async (t) => {
  const path = join(await folder(t), "agent.db");
  const ends = "console.log('http://127.0.0.1:9/  ready'); setTimeout(() => process.exit(1), 50)";
  const seasoned = await Seasoned.local(path, { command: [process.execPath, "-e", ends], retries: 0 });
  let last;
  await until(async () => {
    last = await seasoned.advice("s").catch((error) => error);
    return last.message.includes("Run it by hand");
  }, "the refusal to start it again");
  assert.equal(last.name, "SeasonedConnectionError");
});
