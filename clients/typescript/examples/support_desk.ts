// A support desk in TypeScript: it routes messages by house rules that no model can know.
//
// The model is SmolLM2-135M, whose probabilities for each phrasing are recorded in examples/routing_desk.json, so the
// desk runs offline. Half of the kinds of messages go where their words say, the other half where this house decided.
// Each message is one decision among the desks; the outcome is 1 if the desk kept it, and 0 if it sent it back.
//
// Three desks get the same messages: one without memory, one with memory, and one with a placebo, whose memory is told
// the outcome of another message. Each memory is a new file, of which `Seasoned.local` serves this process alone.
//
// Run: node examples/support_desk.ts [runs, 2 to 10] [messages, from 40 on]     (Node 22.18 or newer; else by tsc)
//      SEASONED_PYTHON names a Python with seasoned in it; without it the command `seasoned` is run.

import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { Seasoned } from "seasoned";

interface World {
  desks: Record<string, string>;
  items: string[];
  kinds: { desk: string; phrasings: string[] }[];
  probabilities: Record<string, Record<string, number>>;
}
interface Message {
  text: string;
  desk: string;
  probabilities: Record<string, number>;
}

const BLOCKS = 4;
const T_975 = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262]; // Student's t, 1 to 9 degrees of freedom

// A small generator with a seed (mulberry32), so that all desks of a run get the same messages.
function generator(seed: number): () => number {
  let state = seed * 0x9e3779b9;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

function messagesOf(world: World, seed: number, n: number): Message[] {
  const draw = generator(seed);
  const one = <Item>(list: Item[]): Item => list[Math.floor(draw() * list.length)]!;
  return Array.from({ length: n }, () => {
    const kind = one(world.kinds);
    const phrasing = one(kind.phrasings);
    return { text: phrasing.replace("{item}", one(world.items)), desk: kind.desk, probabilities: world.probabilities[phrasing]! };
  });
}

const likeliest = (probabilities: Record<string, number>): string => Object.entries(probabilities).sort((a, b) => b[1] - a[1])[0]![0];

// Return which messages a desk without memory routes right.
const alone = (messages: Message[]): boolean[] => messages.map((message) => likeliest(message.probabilities) === message.desk);

// Return which messages a desk with a memory routes right: it is told its own outcomes, or those of other messages.
async function remembering(messages: Message[], file: string, placebo?: () => number): Promise<boolean[]> {
  const command = process.env["SEASONED_PYTHON"] === undefined ? ["seasoned"] : [process.env["SEASONED_PYTHON"], "-m", "seasoned"];
  const seasoned = await Seasoned.local(file, { command, holdout: false, choose: "argmax" });
  const kept: boolean[] = [];
  try {
    for (const { text, desk, probabilities } of messages) {
      const decision = await seasoned.decide(text, Object.keys(probabilities), { question: "desk", probabilities });
      kept.push(decision.action === desk);
      const told = placebo === undefined ? kept.at(-1)! : kept[Math.floor(placebo() * kept.length)]!;
      await seasoned.feedback(decision, told ? 1 : 0, { source: "desk" });
    }
  } finally {
    await seasoned.close();
  }
  return kept;
}

const mean = (values: number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;

// Return a mean with its 95 % t interval.
function interval(values: number[]): string {
  const middle = mean(values);
  const spread = Math.sqrt(values.reduce((sum, value) => sum + (value - middle) ** 2, 0) / (values.length - 1));
  const half = (T_975[values.length - 2]! * spread) / Math.sqrt(values.length);
  return `${middle.toFixed(2)} [${(middle - half).toFixed(2)}, ${(middle + half).toFixed(2)}]`;
}

const [runs = 10, n = 160] = process.argv.slice(2).map(Number);
if (!(Number.isInteger(runs) && runs >= 2 && runs <= 10 && Number.isInteger(n) && n >= 40)) {
  console.error("runs are 2 to 10, messages 40 or more: node examples/support_desk.ts 10 160");
  process.exit(2);
}
const root = process.env["SEASONED_ROOT"] ?? fileURLToPath(new URL("../../../", import.meta.url));
const world: World = JSON.parse(await readFile(join(root, "examples", "routing_desk.json"), "utf8"));
const folder = await mkdtemp(join(tmpdir(), "support-desk-"));
const shares = { alone: [] as number[][], placebo: [] as number[][], memory: [] as number[][] };
try {
  for (let run = 0; run < runs; run += 1) {
    const messages = messagesOf(world, run + 1, n);
    const kept = {
      alone: alone(messages),
      placebo: await remembering(messages, join(folder, `placebo-${run}.db`), generator(1000 + run)),
      memory: await remembering(messages, join(folder, `memory-${run}.db`)),
    };
    for (const arm of ["alone", "placebo", "memory"] as const) {
      const ends = Array.from({ length: BLOCKS + 1 }, (_, block) => Math.round((block * n) / BLOCKS));
      shares[arm].push(ends.slice(1).map((end, block) => mean(kept[arm].slice(ends[block], end).map(Number))));
    }
  }
} finally {
  await rm(folder, { recursive: true, force: true });
}

console.log(`Share of messages that the desk kept; ${runs} runs of ${n} messages, 95 % t intervals, paired by run.`);
console.log("messages   alone  placebo  memory   memory - alone         memory - placebo");
for (let block = 0; block < BLOCKS; block += 1) {
  const of = (arm: keyof typeof shares): number[] => shares[arm].map((run) => run[block]!);
  const less = (arm: keyof typeof shares): string => interval(of("memory").map((value, run) => value - of(arm)[run]!));
  const name = `${Math.round((block * n) / BLOCKS) + 1}-${Math.round(((block + 1) * n) / BLOCKS)}`;
  const means = (["alone", "placebo", "memory"] as const).map((arm) => mean(of(arm)).toFixed(2).padStart(7));
  console.log(`${name.padEnd(9)}${means.join(" ")}   ${less("alone").padEnd(22)} ${less("placebo")}`);
}
