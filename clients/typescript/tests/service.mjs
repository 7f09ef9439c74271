// The real service for the tests: `python -m seasoned serve`, of the Python in SEASONED_PYTHON.

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { Seasoned } from "../index.mjs";

export const COMMAND = [process.env.SEASONED_PYTHON ?? "python3", "-m", "seasoned"];

// Return a folder that is removed after the test.
export async function folder(test) {
  const path = await mkdtemp(join(tmpdir(), "seasoned-test-"));
  test.after(() => rm(path, { recursive: true, force: true }));
  return path;
}

// Return a client with a service of its own on a new memory, both for the duration of a test. `make test` has one service
// for all tests without a holdout, each in a namespace of its own, and leaves out those that need another.
let number = 0;
export async function served(test, options = {}) {
  const { SEASONED_TEST_URL: url, SEASONED_TEST_TOKEN: token, SEASONED_TEST_NAMESPACES: names } = process.env;
  if (url !== undefined && options.holdout === false) {
    const own = names.split(",").filter((name) => name.startsWith(process.argv[1].match(/(\w+)\.test\.mjs$/)[1]));
    return new Seasoned({ url, token, namespace: own[number++] });
  }
  const path = join(await folder(test), "agent.db");
  const client = await Seasoned.local(path, { command: COMMAND, ...options });
  test.after(() => client.close());
  return client;
}

// For tests that start processes, which take seconds.
export const SLOW = { skip: process.env.SEASONED_TEST_URL !== undefined && "it starts processes: make test-typescript" };

// Whether a process runs.
export function isRunning(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

// Wait until something holds; fail after 20 s.
export async function until(holds, what) {
  for (const began = Date.now(); !(await holds()); await new Promise((resume) => setTimeout(resume, 20))) {
    if (Date.now() - began > 20_000) throw new Error(`not within 20 s: ${what}`);
  }
}
