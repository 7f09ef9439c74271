// The client has only what browsers and edge runtimes have: it runs in a context with the web's globals alone.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { fileURLToPath } from "node:url";
import { test } from "node:test";
import { promisify } from "node:util";

const HERE = new URL("../", import.meta.url);

const RUN = `
  import { readFile } from "node:fs/promises";
  import vm from "node:vm";
  const [here, url] = process.argv.slice(1);
  const web = { fetch, URL, AbortController, AbortSignal, Promise, setTimeout, clearTimeout, crypto, TransformStream };
  const context = vm.createContext({ ...web, console });
  const modules = new Map();
  async function load(address) {
    if (!modules.has(address)) {
      const missing = async (name) => { throw new Error("cannot resolve " + name); };
      modules.set(address, new vm.SourceTextModule(await readFile(new URL(address), "utf8"), { context, identifier: address, importModuleDynamically: missing }));
    }
    return modules.get(address);
  }
  const link = async (name, from) => {
    if (!name.startsWith(".")) throw new Error("not of the web: " + name);
    return load(new URL(name, from.identifier).href);
  };
  for (const name of ["index.mjs", "ai.mjs", "no-local.mjs"]) {
    const module = await load(new URL(name, here).href);
    await module.link(link);
    await module.evaluate();
  }
  const { Seasoned } = (await load(new URL("index.mjs", here).href)).namespace;
  const seasoned = new Seasoned({ url });
  const local = await Seasoned.local("agent.db").catch((error) => error.message);
  const { startProcess } = (await load(new URL("no-local.mjs", here).href)).namespace;
  const stub = await startProcess().catch((error) => error.message);
  console.log(JSON.stringify({ advice: await seasoned.advice("s"), local, stub }));
`;

test("the client runs without Node's modules and globals", async (t) => {
  const server = createServer((_, response) => response.end('{"text": "prefer it"}'));
  await new Promise((resume) => server.listen(0, "127.0.0.1", resume));
  t.after(() => server.close());
  const url = `http://127.0.0.1:${server.address().port}`;
  const run = promisify(execFile);
  const { stdout } = await run(process.execPath, ["--experimental-vm-modules", "--no-warnings", "--input-type=module", "-e", RUN, HERE.href, url]);
  const said = JSON.parse(stdout);
  assert.deepEqual(said.advice, { text: "prefer it" });
  assert.match(said.local, /needs Node.*Pass \{ url \}/);
  assert.match(said.stub, /needs Node.*Pass \{ url \}/);
  server.closeAllConnections();
});

test("only local.mjs imports Node's modules, and nothing imports a package", async () => {
  const { files, dependencies } = JSON.parse(await readFile(new URL("package.json", HERE), "utf8"));
  assert.deepEqual(files, ["*.mjs", "*.d.ts"]);
  assert.equal(dependencies, undefined);
  for (const name of ["ai", "client", "episode", "errors", "index", "local", "no-local", "transport"]) {
    const text = await readFile(fileURLToPath(new URL(`${name}.mjs`, HERE)), "utf8");
    const imported = [...text.matchAll(/(?:from|import)\s*\(?"([^"]+)"/g)].map((found) => found[1]);
    const foreign = imported.filter((one) => !one.startsWith("./") && one !== "#local" && !(name === "local" && one.startsWith("node:")));
    assert.deepEqual(foreign, [], name);
  }
});
