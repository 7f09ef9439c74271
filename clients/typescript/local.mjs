// A service of this process's own, on a file: `seasoned serve`, on a port that the system chooses, behind a token.
//
// It ends with this process, however that ends: its standard input is a pipe from here, and the system closes the pipe.
// If the service ends first, the next request starts another one, on the same port if that is free. Nothing that was
// stored is lost.

import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { SeasonedConnectionError, SeasonedError } from "./errors.mjs";

const KEPT_CHARS = 4_000;
const QUICK_END_MS = 2_000;
const MOST_QUICK_ENDS = 3;
const PORT_IS_TAKEN = "the port must be free"; // of the service's refusal
const FLAGS = { namespace: "--namespace", encoder: "--encoder", redact: "--redact", choose: "--choose", upstream: "--upstream", model: "--model" };
const OTHERS = ["command", "args", "holdout", "bounds", "startMs", "env"];

// Start a service, and return where it is: an address as of transport.mjs.
export async function startProcess(path, options = {}) {
  const service = new SeasonedProcess(path, options);
  await service.find();
  return service;
}

class SeasonedProcess {
  constructor(path, { command = ["seasoned"], args = [], startMs = 60_000, env, ...options }) {
    for (const name of Object.keys(options)) {
      if (!(name in FLAGS) && !OTHERS.includes(name)) {
        const known = [...Object.keys(FLAGS), ...OTHERS].sort().join(", ");
        throw new SeasonedError(`the option ${name}`, `a local service has ${known}`, "Pass other flags of seasoned serve as args.");
      }
    }
    this.token = randomBytes(32).toString("base64url");
    this.url = undefined;
    this.startMs = startMs;
    this.env = env;
    const { holdout = true, bounds, choose = "sample" } = options;
    const named = Object.entries({ ...options, choose }).filter(([name, value]) => name in FLAGS && value !== undefined);
    const [program, ...first] = command;
    this.program = program;
    const file = path.startsWith("-") ? `./${path}` : path; // it is no flag
    this.args = [...first, "serve", file, "--create", "--stop-with-stdin", "--quiet"];
    this.args.push(...named.flatMap(([name, value]) => [FLAGS[name], String(value)]));
    if (!holdout) this.args.push("--no-holdout");
    if (bounds !== undefined) this.args.push("--bounds", ...bounds.map(String));
    this.args.push(...args);
    this._running = undefined; // a promise of the address, while a service runs or starts
    this._child = undefined;
    this._isClosed = false;
    this._quickEnds = 0;
  }

  // Return the address of the running service; start one if none runs.
  find() {
    if (this._isClosed) {
      return Promise.reject(new SeasonedError("a request after close()", "the service of this client is stopped", "Open another: Seasoned.local(path)."));
    }
    this._running ??= this._start().catch((error) => {
      this._running = undefined;
      throw error;
    });
    return this._running;
  }

  async close() {
    this._isClosed = true;
    await this._running?.catch(() => {});
    const child = this._child;
    if (child === undefined) return;
    const ended = new Promise((resume) => child.once("close", resume));
    ref(child);
    child.stdin.end();
    const late = setTimeout(() => child.kill("SIGKILL"), 15_000);
    await ended;
    clearTimeout(late);
  }

  async _start() {
    if (this._quickEnds >= MOST_QUICK_ENDS) {
      throw new SeasonedConnectionError(
        `a service that ended ${this._quickEnds} times as soon as it had started`,
        "the service of a client runs",
        `Run it by hand to see why: ${[this.program, ...this.args].join(" ")}`,
        { kind: "ConnectionError" },
      );
    }
    const folder = await mkdtemp(join(tmpdir(), "seasoned-"));
    try {
      const file = join(folder, "token");
      await writeFile(file, this.token, { mode: 0o600 });
      const args = [...this.args, "--token-file", file];
      const { url: before } = this;
      if (before === undefined) this.url = await this._ready(args);
      else {
        this.url = await this._ready([...args, "--port", new URL(before).port]).catch((error) => {
          if (!error.message.includes(PORT_IS_TAKEN)) throw error;
          return this._ready(args);
        });
      }
      if (before !== undefined && this.url !== before) {
        process.emitWarning(`${before} was taken while the service did not run: it is at ${this.url} now. Call baseURL again.`, "SeasonedWarning");
      }
      return this;
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }

  // Start the program, and return the URL in the first line that it writes.
  _ready(args) {
    const isWindows = process.platform === "win32"; // there a process of its own group has a window
    const child = spawn(this.program, args.includes("--port") ? args : [...args, "--port", "0"], {
      stdio: ["pipe", "pipe", "pipe"],
      detached: !isWindows, // Ctrl-C is for this process, which may have something left to store
      windowsHide: true,
      env: { ...process.env, ...this.env },
    });
    const began = Date.now();
    return new Promise((resolve, reject) => {
      let said = "", log = "";
      const failed = (seen, next, cause) => {
        clearTimeout(late);
        const told = log.trim() === "" ? "" : ` (${log.trim().slice(-KEPT_CHARS)})`;
        reject(new SeasonedConnectionError(`${seen}${told}`, `${this.program} serve starts a service`, next, { kind: "ConnectionError", cause }));
      };
      const late = setTimeout(() => {
        child.kill("SIGKILL");
        failed(`no address within ${this.startMs} ms`, "Pass a larger startMs.");
      }, this.startMs);
      child.stdin.on("error", () => {}); // it has ended: "close" says so
      child.stderr.setEncoding("utf8").on("data", (text) => {
        log = (log + text).slice(-KEPT_CHARS);
      });
      child.stdout.setEncoding("utf8").on("data", (text) => {
        if (this._child === child) return;
        said = (said + text).slice(0, KEPT_CHARS);
        const found = /^(http:\/\/\S+?)\/?\s.*\n/.exec(said);
        if (found === null) return;
        clearTimeout(late);
        this._child = child;
        unref(child);
        resolve(found[1]);
      });
      child.once("error", (cause) => {
        const next = "In a clone of the repository: pip install '.[serve]'. Or pass { command: [\".venv/bin/seasoned\"] }.";
        failed(`${this.program} cannot be run (${cause.code})`, next, cause);
      });
      child.once("close", (code, signal) => {
        if (this._child === child) {
          this._child = this._running = undefined;
          this._quickEnds = Date.now() - began < QUICK_END_MS ? this._quickEnds + 1 : 0;
        } else {
          failed(`a service that ended at its start with ${signal ?? code}`, "Correct what it says.");
        }
      });
    });
  }
}

// Let this process end although its service runs.
function unref(child) {
  for (const one of [child, ...child.stdio]) one.unref?.();
}

function ref(child) {
  for (const one of [child, ...child.stdio]) one.ref?.();
}
