// Stands for local.mjs where there is no Node: bundles for browsers and edge runtimes have no process to start.

import { SeasonedError } from "./errors.mjs";

export async function startProcess() {
  throw new SeasonedError("Seasoned.local", "a process of its own needs Node", "Pass { url } of a service.");
}
