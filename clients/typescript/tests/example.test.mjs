// The support desk compiles, runs offline, and refuses what it cannot compute.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, symlink } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { test } from "node:test";
import { promisify } from "node:util";

import { COMMAND, SLOW, folder } from "./service.mjs";

const HERE = fileURLToPath(new URL("../", import.meta.url));
const tsc = join(HERE, "node_modules", "typescript", "bin", "tsc");
const skip = SLOW.skip || (!existsSync(tsc) && "TypeScript is not installed: make test-typescript");

test("the support desk runs, and prints a row for each quarter", { skip }, async (t) => {
  const out = await folder(t);
  const run = promisify(execFile);
  await run(process.execPath, [tsc, "--project", "examples/tsconfig.json", "--outDir", out], { cwd: HERE }).catch((error) => assert.fail(error.stdout));
  await mkdir(join(out, "node_modules"));
  await symlink(HERE, join(out, "node_modules", "seasoned"), "junction");
  const script = join(out, "examples", "support_desk.js");
  const env = { ...process.env, SEASONED_PYTHON: COMMAND[0], SEASONED_ROOT: join(HERE, "..", "..") };
  const { stdout } = await run(process.execPath, [script, "2", "40"], { env });
  const rows = stdout.trim().split("\n").slice(2);
  assert.deepEqual(rows.map((row) => row.split(" ")[0]), ["1-10", "11-20", "21-30", "31-40"]);
  for (const row of rows) assert.match(row, /^\d+-\d+ +[01]\.\d\d +[01]\.\d\d +[01]\.\d\d +-?\d\.\d\d \[/);
  await assert.rejects(run(process.execPath, [script, "1", "40"], { env }), { code: 2 });
});
