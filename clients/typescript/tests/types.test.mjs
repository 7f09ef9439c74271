// The types of api.d.ts are those of the service's /openapi.json; and, where TypeScript is installed, all types compile.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { test } from "node:test";
import { promisify } from "node:util";

import { served } from "./service.mjs";

const HERE = new URL("../", import.meta.url);

const TYPES = {
  DecideRequest: "POST /v1/decide",
  Decision: "POST /v1/decide 200",
  AdviceRequest: "POST /v1/advice",
  Advice: "POST /v1/advice 200",
  ExamplesRequest: "POST /v1/examples",
  Examples: "POST /v1/examples 200",
  RecallRequest: "POST /v1/recall",
  Recall: "POST /v1/recall 200",
  TranscriptRequest: "POST /v1/transcripts",
  StoredTranscript: "POST /v1/transcripts 201",
  EpisodeRecord: "POST /v1/episodes",
  StoredEpisode: "POST /v1/episodes 201",
  SearchRequest: "POST /v1/search",
  StoredFeedback: "POST /v1/feedback 201",
  Lifts: "GET /v1/lift 200",
  Problem: "POST /v1/decide 400",
};

function schemaOf(document, where) {
  const [method, path, status] = where.split(" ");
  const operation = document.paths[path][method.toLowerCase()];
  return (status === undefined ? operation.requestBody : operation.responses[status]).content["application/json"].schema;
}

// Return the interfaces and aliases of declarations, which have one field a line.
function declared(text) {
  const plain = text.replace(/\/\*\*[^]*?\*\//g, "");
  const aliases = Object.fromEntries([...plain.matchAll(/^export type (\w+) = (.+);$/gm)].map(([, name, type]) => [name, type]));
  const interfaces = {};
  for (const [, name, parent, body] of plain.matchAll(/^export interface (\w+)(?: extends (\w+))? \{\n([^]*?)^\}/gm)) {
    const fields = [...body.matchAll(/^  (\w+)(\?)?: (.+);$/gm)].map(([, field, optional, type]) => [field, { type, required: optional === undefined }]);
    interfaces[name] = { ...(parent && interfaces[parent]), ...Object.fromEntries(fields) };
  }
  return { aliases, interfaces };
}

// Return what a type says otherwise than a schema, with the place of each.
function differences({ aliases, interfaces }, type, schema, place) {
  const said = (aliases[type] ?? type).replace(/\b\w+\b/g, (word) => (/^"/.test(word) || !(word in aliases) ? word : aliases[word]));
  const differs = (is) => (is ? [] : [`${place}: ${type} is not ${JSON.stringify(schema).slice(0, 120)}`]);
  const types = [schema.type ?? []].flat();
  if (schema.oneOf) return differs(schema.oneOf.every((one) => (one.enum ? said.includes(JSON.stringify(one.enum[0])) : said.includes("string[]"))));
  if (schema.enum) {
    const values = said.split("|").map((one) => one.trim()).sort();
    return differs(JSON.stringify(values) === JSON.stringify(schema.enum.map((one) => JSON.stringify(one)).sort()));
  }
  if (types.length === 0) return differs(said === "unknown");
  const bare = said.replace(/ \| null$/, "");
  const nulls = differs(said.endsWith("| null") === types.includes("null"));
  const [kind] = types;
  if (kind === "integer" || kind === "number") return [...nulls, ...differs(bare === "number")];
  if (kind === "string" || kind === "boolean") return [...nulls, ...differs(bare === kind)];
  if (kind === "array" && schema.maxItems === 2 && schema.minItems === 2) return [...nulls, ...differs(/^\[.*,.*\]$/.test(bare))];
  if (kind === "array") {
    const inner = type.endsWith("[]") ? type.slice(0, -2) : undefined;
    return inner === undefined ? differs(false) : [...nulls, ...differences({ aliases, interfaces }, inner, schema.items, `${place}[]`)];
  }
  if (schema.properties === undefined) {
    return [...nulls, ...differs(bare === "Record<string, number>" ? ["number", "integer"].includes(schema.additionalProperties?.type) : type in interfaces)];
  }
  const fields = interfaces[type];
  if (fields === undefined) return differs(false);
  const names = new Set([...Object.keys(fields), ...Object.keys(schema.properties)]);
  return [...names].flatMap((name) => {
    const own = fields[name], its = schema.properties[name];
    if (own === undefined) return schema.additionalProperties === false ? [`${place}.${name} is missing`] : [];
    if (its === undefined) return [`${place}.${name} is none of the service's`];
    const needs = own.required === (schema.required ?? []).includes(name) ? [] : [`${place}.${name}: required or not`];
    return [...needs, ...differences({ aliases, interfaces }, own.type, its, `${place}.${name}`)];
  });
}

const compared = (types, document) => Object.entries(TYPES).flatMap(([name, where]) => differences(types, name, schemaOf(document, where), name));

test("the types are those of /openapi.json, and another one is noticed", async (t) => {
  const seasoned = await served(t, { holdout: false });
  const document = await (await fetch(`${seasoned.url}/openapi.json`)).json();
  const text = await readFile(new URL("api.d.ts", HERE), "utf8");
  assert.deepEqual(compared(declared(text), document), []);

  const lines = text.split("\n");
  const wrong = [
    ["  propensity: number;\n  evidence", "  propensity: string;\n  evidence", "Decision.propensity"],
    ["  kl_nats: number;", "  kl_nat: number;", "Decision.kl_nats"],
    ["  id: string | null;", "  id: string;", "Decision.id"],
    ['"memory" | "base" | "holdout"', '"memory" | "base"', "Decision.mode"],
    ["  prefer: AdvisedAction[];", "  prefer: Example[];", "Advice.prefer"],
    ["  exclude_task?: string;\n}\nexport interface ExamplesRequest", "  exclude_task: string;\n}\nexport interface ExamplesRequest", "ExamplesRequest.exclude_task"],
    ["  tools?: string[];", "  tools?: string;", "RecallRequest.tools"],
    ["  families: Lift[];", "  families: Lift;", "Lifts.families"],
  ];
  assert.ok(lines.length > 100);
  for (const [right, changed, place] of wrong) {
    assert.ok(text.includes(right), right);
    const found = compared(declared(text.replace(right, changed)), document);
    assert.ok(found.some((one) => one.startsWith(place)), `${place} in ${JSON.stringify(found)}`);
  }
});

const tsc = fileURLToPath(new URL("node_modules/typescript/bin/tsc", HERE));

test("the types compile, in the uses that they allow and refuse", { skip: !existsSync(tsc) && "TypeScript is not installed: make test-typescript" }, async () => {
  const run = promisify(execFile);
  await run(process.execPath, [tsc, "--project", "tests/tsconfig.json"], { cwd: fileURLToPath(HERE) }).catch((error) => assert.fail(error.stdout));
});
