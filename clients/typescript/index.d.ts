import type {
  Advice,
  AdviceOptions,
  Arm,
  ChatMessage,
  DecideOptions,
  Decision,
  Ending,
  EpisodeRecord,
  Examples,
  ExamplesOptions,
  Lift,
  Numbers,
  Recall,
  RecallOptions,
  SearchOptions,
  StepRef,
  StoredEpisode,
  StoredFeedback,
  StoredTranscript,
  TranscriptOptions,
} from "./api.js";

export type * from "./api.js";

export interface RequestOptions {
  /** Aborts the request, which then rejects with the signal's reason. */
  signal?: AbortSignal;
  /** Milliseconds until the request rejects with a SeasonedTimeoutError. Default: the client's. */
  timeoutMs?: number;
}

export interface ClientOptions {
  /** Of the service. Default: http://127.0.0.1:8710. */
  url?: string;
  /** One of its `--token-file`. Keep it out of pages that others load. */
  token?: string;
  /** Which of its namespaces. Default: its only one. */
  namespace?: string;
  /** Milliseconds for a request with its repetitions. Default: 10,000. */
  timeoutMs?: number;
  /** How often a request is repeated that found no service or a busy one, where that changes nothing. Default: 2. */
  retries?: number;
  fetch?: typeof globalThis.fetch;
}

export interface LocalOptions extends Omit<ClientOptions, "url" | "token"> {
  /** The program. Default: ["seasoned"]. In a virtual environment: [".venv/bin/seasoned"]. */
  command?: string[];
  /** More flags of `seasoned serve`. */
  args?: string[];
  /** Whether a share of the episodes goes without memory, so that the lift is measured. Default: true. */
  holdout?: boolean;
  /** The lowest and the highest outcome of an episode. Default: [0, 1]. */
  bounds?: [low: number, high: number];
  /** Draw from the probabilities, so that every option is tried, or take the most probable one. Default: sample. */
  choose?: "sample" | "argmax";
  /** Of a new memory: `masked` hides numbers, ids and times. */
  encoder?: string;
  redact?: string;
  /** URL of a server of models, for `baseURL`. */
  upstream?: string;
  model?: string;
  /** Milliseconds for the start. Default: 60,000. */
  startMs?: number;
  env?: Record<string, string>;
}

/** A number is a reward, true or false a thumb. `right` is the option that was right. */
export type Outcome =
  | number
  | boolean
  | { reward: number; step?: number }
  | { right: string }
  | { up: boolean; comment?: string; step?: number }
  | { kind: string; step?: number; [field: string]: unknown };

export interface FeedbackOptions extends RequestOptions {
  /** Yours: the same again changes nothing. */
  id?: string;
  source?: string;
  author?: string;
  weight?: number;
  question?: string;
  step?: number;
}

export interface Neighbor {
  similarity: number;
  return: number;
  state: string;
  action: string;
  reward: number;
  episode_id: string;
  step: number;
  [field: string]: unknown;
}

export declare class Seasoned {
  constructor(options?: ClientOptions);
  /** Start a service on a file for this process alone. Needs Node, and `seasoned` installed. */
  static local(path: string, options?: LocalOptions): Promise<Seasoned>;
  readonly url: string;
  /** For a client of a model API that calls through the gateway with a key of its own. */
  readonly headers: Record<string, string>;
  /** The base URL for a client of a model API, whose calls are then one episode. */
  baseURL(episode: string | Episode): string;
  episode(task: string, options?: { id?: string; model?: string; subject?: string }): Episode;
  /** Decide among options; the decision is stored, and awaits feedback. */
  decide(state: unknown, options: string[], more?: DecideOptions & RequestOptions): Promise<Decision>;
  advice(state: string, more?: AdviceOptions & RequestOptions): Promise<Advice>;
  examples(task: string, more?: ExamplesOptions & RequestOptions): Promise<Examples>;
  recall(messages: ChatMessage[], more?: RecallOptions & RequestOptions): Promise<Recall>;
  /** Store a whole episode. Without an id it gets one, so that a repetition stores nothing twice. */
  record(episode: EpisodeRecord, options?: RequestOptions): Promise<StoredEpisode>;
  /** Store a conversation as an episode. */
  transcript(messages: ChatMessage[], more?: TranscriptOptions & RequestOptions): Promise<StoredTranscript>;
  search(state: string, more?: SearchOptions & RequestOptions): Promise<{ neighbors: Neighbor[]; next?: string }>;
  feedback(target: string | Decision | Episode, outcome: Outcome, more?: FeedbackOptions): Promise<StoredFeedback>;
  revoke(feedbackId: string, options?: RequestOptions): Promise<StoredFeedback>;
  lift(family?: undefined, options?: RequestOptions): Promise<Lift[]>;
  lift(family: string, options?: RequestOptions): Promise<Lift>;
  /** Stop the service that `local` started. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface EndOptions extends RequestOptions {
  /** Added to that of the last step. Without any reward the episode awaits feedback. */
  reward?: number;
  ending?: Ending;
  final_state?: string;
  awaits_feedback?: boolean;
}

/** An episode that this process records. It is stored whole, at its end. */
export declare class Episode {
  private constructor();
  readonly id: string;
  readonly task: string;
  readonly baseURL: string;
  /** Whether memory takes part; null or undefined before the first decision, and where nothing is compared. */
  readonly arm: Arm | undefined;
  model: string | undefined;
  decide(state: unknown, options: string[], more?: Omit<DecideOptions, "episode_id" | "step" | "task" | "id" | "question" | "instructions" | "subject"> & RequestOptions): Promise<Decision>;
  advice(state: string, more?: AdviceOptions & RequestOptions): Promise<Advice>;
  examples(state: string, more?: Omit<ExamplesOptions, "state"> & RequestOptions): Promise<Examples>;
  recall(messages: ChatMessage[], more?: Omit<RecallOptions, "episode_id"> & RequestOptions): Promise<Recall>;
  /** Add an executed step: a decision, or the text of an action. */
  record(state: unknown, decision: Decision | string, more?: { reward?: number; prior?: Numbers; propensity?: number; shown?: StepRef[] }): void;
  /** Set the conversation so far, with the model's answer. */
  converse(messages: ChatMessage[], answer: ChatMessage, shown?: StepRef[]): void;
  /** Store it, and return its id. After an error it can be called again. */
  end(options?: EndOptions): Promise<string>;
  feedback(outcome: Outcome, more?: FeedbackOptions): Promise<StoredFeedback>;
  /** The end of a block with `await using`: an episode without an `end()` is aborted, as after an exception. */
  [Symbol.asyncDispose](): Promise<void>;
}

/** What was seen, the rule it broke, and the next step. */
export declare class SeasonedError extends Error {
  readonly seen: string;
  readonly rule: string;
  readonly next: string;
  /** The class of the error in seasoned, such as `InputError`. */
  readonly kind: string;
  /** Of HTTP, where the service has answered. */
  readonly status: number | undefined;
}
/** The service refused the request (4xx). */
export declare class SeasonedRequestError extends SeasonedError {}
/** The service failed (5xx). */
export declare class SeasonedServerError extends SeasonedError {}
/** What answered is not the service, or its answer cannot be read. */
export declare class SeasonedAnswerError extends SeasonedError {}
/** The service cannot be reached, or does not start. */
export declare class SeasonedConnectionError extends SeasonedError {}
/** No answer in time. */
export declare class SeasonedTimeoutError extends SeasonedError {}
