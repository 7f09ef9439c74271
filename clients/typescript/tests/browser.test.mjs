// The client in a browser: a page imports it, and calls the service by a proxy on the page's own origin.

import assert from "node:assert/strict";
import { execFile, execFileSync } from "node:child_process";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";

import { SLOW, folder, served } from "./service.mjs";

const HERE = new URL("../", import.meta.url);

const PAGE = `<!doctype html><pre></pre><script type="module">
  import { Seasoned } from "/client/index.mjs";
  import { seasonedMiddleware } from "/client/ai.mjs";
  const seasoned = new Seasoned({ url: location.origin });
  const said = {};
  try {
    for (let run = 0; run < 3; run += 1) {
      await seasoned.feedback(await seasoned.decide("a lamp", ["sales", "refunds"]), { right: "refunds" });
    }
    said.mode = (await seasoned.decide("a lamp", ["sales", "refunds"])).mode;
    const episode = seasoned.episode("desk");
    const { transformParams } = seasonedMiddleware(episode, { failOpen: false });
    const user = { role: "user", content: [{ type: "text", text: "a lamp" }] };
    said.prompt = (await transformParams({ type: "generate", params: { prompt: [user] }, model: { modelId: "m" } })).prompt;
    said.local = await Seasoned.local("agent.db").catch((error) => error.message);
    said.foreign = await new Seasoned({ url: "FOREIGN", retries: 0 }).advice("s").catch((error) => error.name);
  } catch (error) {
    said.error = String(error);
  }
  document.querySelector("pre").textContent = JSON.stringify(said);
</script>`;

function chromium() {
  for (const name of [process.env.SEASONED_CHROMIUM, "chromium", "google-chrome"].filter(Boolean)) {
    try {
      execFileSync(name, ["--version"], { stdio: "ignore" });
      return name;
    } catch {
      // the next one
    }
  }
  return undefined;
}

// Serve the page and the client's files, and send everything else on to the service, with its token.
async function site(t, seasoned) {
  const server = createServer(async (request, response) => {
    const { pathname } = new URL(request.url, "http://page");
    if (pathname === "/") return response.writeHead(200, { "content-type": "text/html" }).end(PAGE.replace("FOREIGN", seasoned.url));
    const file = /^\/client\/(\w+\.mjs)$/.exec(pathname)?.[1];
    if (file !== undefined) return response.writeHead(200, { "content-type": "text/javascript" }).end(await readFile(new URL(file, HERE)));
    let body = "";
    for await (const part of request.setEncoding("utf8")) body += part;
    const headers = { "content-type": "application/json", authorization: `Bearer ${seasoned.headers["x-seasoned-token"]}` };
    const answer = await fetch(seasoned.url + request.url, { method: request.method, headers, body: body || undefined });
    response.writeHead(answer.status, { "content-type": "application/json" }).end(await answer.text());
  });
  await new Promise((resume) => server.listen(0, "127.0.0.1", resume));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${server.address().port}/`;
}

const program = SLOW.skip ? undefined : chromium();
const skip = SLOW.skip || (program === undefined && "it needs a Chromium; name one in SEASONED_CHROMIUM");

test("a page learns by a proxy on its own origin, and another origin's service is out of its reach", { skip }, async (t) => {
  const seasoned = await served(t, { holdout: false });
  const flags = ["--headless", "--no-sandbox", "--disable-gpu", `--user-data-dir=${join(await folder(t), "profile")}`];
  const run = promisify(execFile);
  const { stdout } = await run(program, [...flags, "--virtual-time-budget=20000", "--dump-dom", await site(t, seasoned)], { timeout: 60_000 });
  const said = JSON.parse(/<pre>(.*)<\/pre>/.exec(stdout)[1].replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&"));
  assert.deepEqual([said.error, said.mode, said.foreign], [undefined, "memory", "SeasonedConnectionError"]);
  assert.equal(said.prompt[0].content[0].text, "a lamp");
  assert.match(said.local, /needs Node.*Pass \{ url \}/);
});
