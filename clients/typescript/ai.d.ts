import type { ChatMessage, Episode } from "./index.js";

export interface MiddlewareOptions<Version extends "v2" | "v3" | "v4" = "v3"> {
  /** The best past steps, lines about what was clearly better, or nothing: the call is recorded alone. Default: examples. */
  mode?: "examples" | "advise" | "observe";
  /** Whether a call goes on without memory where that fails. Default: true. */
  failOpen?: boolean;
  /** Milliseconds that a call waits for memory. Default: 1,000. */
  timeoutMs?: number;
  /** Is told of each failure that a call went on without: a SeasonedError, or what the function that finds the episode threw. */
  onError?: (error: unknown) => void;
  /** Of the AI SDK: v2 of ai 5, v3 of ai 6, v4 of ai 7. Default: v3. */
  specificationVersion?: Version;
}

/** The parameters of a call that the middleware reads; the rest passes. */
export interface CallParams {
  prompt: any[];
  tools?: any[];
  abortSignal?: AbortSignal;
  [field: string]: any;
}

export interface SeasonedMiddleware<Version extends string = "v3"> {
  readonly specificationVersion: Version;
  transformParams(options: { type: "generate" | "stream"; params: any; model: any }): Promise<any>;
  wrapGenerate(options: { doGenerate: () => PromiseLike<any>; doStream: () => PromiseLike<any>; params: any; model: any }): Promise<any>;
  wrapStream(options: { doGenerate: () => PromiseLike<any>; doStream: () => PromiseLike<any>; params: any; model: any }): Promise<any>;
}

/**
 * A middleware for `wrapLanguageModel`. The calls of an episode get memory's block at the end of their last message, and
 * their conversation is what `episode.end()` stores.
 *
 * @param episode the episode of the calls, or a function that finds it, such as by `params.providerOptions`; a call
 * without one passes as it is.
 */
export declare function seasonedMiddleware<Version extends "v2" | "v3" | "v4" = "v3">(
  episode: Episode | ((params: CallParams) => Episode | null | undefined | Promise<Episode | null | undefined>),
  options?: MiddlewareOptions<Version>,
): SeasonedMiddleware<Version>;

/** Return a prompt of the AI SDK as messages of Chat Completions. */
export declare function chatMessages(prompt: any[]): ChatMessage[];
