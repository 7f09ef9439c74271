// Uses of the types: tsc refuses this file where one of them, or an error that is expected, is no longer there.

import { Seasoned, SeasonedError, type Decision, type Lift } from "seasoned";
import { seasonedMiddleware } from "seasoned/ai";
import { wrapLanguageModel, type LanguageModelMiddleware } from "ai";
import type { LanguageModelMiddleware as MiddlewareOf5 } from "ai-5";
import type { LanguageModelMiddleware as MiddlewareOf7 } from "ai-7";

export async function uses(seasoned: Seasoned, model: Parameters<typeof wrapLanguageModel>[0]["model"]): Promise<void> {
  const local: Seasoned = await Seasoned.local("agent.db", { holdout: false, bounds: [0, 1], choose: "argmax" });
  const decision: Decision = await local.decide({ cart: [1] }, ["pay", "back"], { probabilities: { pay: 0.5, back: 0.5 }, timeoutMs: 50 });
  await seasoned.feedback(decision, { right: "pay" }, { source: "tests" });
  const one: Lift = await seasoned.lift("desk");
  const all: Lift[] = await seasoned.lift();
  const arm: "treated" | "control" | null = decision.arm;
  await using episode = seasoned.episode("desk", { id: "run-7" });
  episode.record("page", await episode.decide("page", ["pay"], { admissible: "any" }), { reward: 1 });
  episode.record("page", "pay", { shown: (await episode.examples("page")).shown });
  const id: string = await episode.end({ reward: 1, ending: "truncated" });
  const url: string = seasoned.baseURL(episode);
  wrapLanguageModel({ model, middleware: seasonedMiddleware(episode, { mode: "advise" }) });
  const middleware: LanguageModelMiddleware = seasonedMiddleware(() => episode);
  const of5: MiddlewareOf5 = seasonedMiddleware(episode, { specificationVersion: "v2" });
  const of7: MiddlewareOf7 = seasonedMiddleware(episode, { specificationVersion: "v4" });

  // @ts-expect-error: options are a list
  await seasoned.decide("s", "pay");
  // @ts-expect-error: a misspelt field
  await seasoned.decide("s", ["pay"], { probabilites: { pay: 1 } });
  // @ts-expect-error: the episode names itself
  await episode.decide("s", ["pay"], { episode_id: "other" });
  // @ts-expect-error: a reward is on a step by its number
  await seasoned.feedback("e", { reward: 1, step: "0" });
  // @ts-expect-error: no such mode
  seasonedMiddleware(episode, { mode: "steer" });
  // @ts-expect-error: an ending of another name
  await episode.end({ ending: "lost" });
  // @ts-expect-error: an outcome is no text
  await seasoned.feedback("e", "good");
  // @ts-expect-error: an episode is made by a client
  new (episode.constructor as typeof import("seasoned").Episode)();
  if (new Error() instanceof SeasonedError) void [one, all, arm, id, url, middleware, of5, of7];
}
