/**
 * Requests and answers of the service, as `/openapi.json` describes them: tests/types.test.mjs compares both.
 * Names are those of the wire. `*Options` are the fields of a request beside its positional ones.
 */

export type Numbers = Record<string, number>;
export type Interval = [low: number, high: number];
/** A stored step: the id of its episode, and its place there. */
export type StepRef = [episodeId: string, step: number];
export type Mode = "memory" | "base" | "holdout";
export type Arm = "treated" | "control";
export type Ending = "terminated" | "truncated" | "aborted";
export interface EvidenceCount {
  steps: number;
  states: number;
}

export interface DecideOptions {
  /** How probable the model finds each option. Default: all are equally probable. */
  probabilities?: Numbers;
  /** In place of probabilities: their logarithms, in nats, at most 0. */
  logprobs?: Numbers;
  /** By which outcomes and lift are grouped. Default: the question's name. */
  task?: string;
  /** Questions of different names share no evidence. */
  question?: string;
  /** The question in words. */
  instructions?: string;
  /** Whose probabilities these are. */
  model?: string;
  /** The person concerned, so that the decision can be erased. */
  subject?: string;
  /** Yours, for the stored decision. */
  id?: string;
  /** The decision is a step of an episode that is posted under this id; see `Episode.decide`. */
  episode_id?: string;
  step?: number;
  /** With episode_id: what memory may add to the options. */
  admissible?: "any" | string[];
  /** The same seed gives the same draw. */
  seed?: number;
}
export interface DecideRequest extends DecideOptions {
  /** A text, or any other JSON value. */
  state: unknown;
  options: string[];
}
export interface Decision {
  /** For feedback; null where nothing is stored. */
  id: string | null;
  /** The option to take. */
  action: string;
  /** A state that is no text, as it is stored. */
  state: string | null;
  mode: Mode;
  arm: Arm | null;
  reason: string;
  /** Of each option, with memory. */
  probabilities: Numbers;
  /** Of each option, without memory. */
  base: Numbers;
  advantages: Numbers;
  /** Stored steps with each option. */
  counts: Numbers;
  beta: number;
  kl_nats: number;
  /** The probability with which the action was chosen. */
  propensity: number;
  evidence: EvidenceCount;
  policy: string;
  /** Logprobs of the model's own options. */
  prior: Numbers;
}

export interface AdviceOptions {
  /** Actions that are possible now; others get no line. */
  actions?: string[];
  task?: string;
  step?: number;
}
export interface AdviceRequest extends AdviceOptions {
  state: string;
}
export interface AdvisedAction {
  action: string;
  count: number;
  mean_return: number;
  advantage: number;
  interval: Interval;
}
export interface Advice {
  /** Lines for the end of a prompt; empty if no advantage is clear. */
  text: string;
  prefer: AdvisedAction[];
  avoid: AdvisedAction[];
  evidence: EvidenceCount;
  baseline: number | null;
  reason: string;
}

export interface ExamplesOptions {
  state?: string;
  plan?: string;
  reasoning?: string;
  purpose?: "plan" | "reason" | "act";
  budget_tokens?: number;
  exclude_task?: string;
}
export interface ExamplesRequest extends ExamplesOptions {
  task: string;
}
export interface Example {
  episode_id: string;
  step: number;
  task: string;
  state: string;
  action: string;
  plan: string | null;
  reasoning: string | null;
  return: number;
  value: number;
  interval: Interval;
  kind: "imitate" | "avoid";
  similarity: number;
  n_shown: number;
  shortened: boolean;
}
export interface Examples {
  /** The examples as text for a prompt; empty if there are none. */
  text: string;
  examples: Example[];
  /** For `record(state, action, { shown })`: their effect is learned from the outcome. */
  shown: StepRef[];
}

/** A message as of Chat Completions. */
export interface ChatMessage {
  role: string;
  content?: unknown;
  [field: string]: unknown;
}
export interface RecallOptions {
  mode?: "examples" | "advise";
  /** Names of the tools that the model may call. */
  tools?: string[];
  task?: string;
  model?: string;
  /** Of the conversation: a share of the episodes gets no block, so that the lift is measured. */
  episode_id?: string;
}
export interface RecallRequest extends RecallOptions {
  messages: ChatMessage[];
}
export interface Recall {
  text: string;
  /** The text between two lines that mark it as memory's; empty if there is none. */
  block: string;
  shown: StepRef[];
  mode: Mode;
  arm: Arm | null;
  reason: string;
}
export interface TranscriptOptions {
  id?: string;
  task?: string;
  /** Of the last step. */
  reward?: number;
  ending?: Ending;
  model?: string;
  policy?: string;
  arm?: string;
  subject?: string;
  awaits_feedback?: boolean | null;
}
export interface TranscriptRequest extends TranscriptOptions {
  messages: ChatMessage[];
}
export interface StoredTranscript {
  id: string;
  steps: number;
}

export interface StepRecord {
  state: string;
  action: string;
  reward?: number;
  /** Logprobs of the model's own candidates. */
  prior?: Numbers;
  propensity?: number;
  shown?: StepRef[];
}
export interface EpisodeRecord {
  task: string;
  steps: StepRecord[];
  id?: string;
  final_state?: string;
  ending?: Ending;
  model?: string;
  policy?: string;
  arm?: string;
  subject?: string;
  awaits_feedback?: boolean | null;
}
export interface StoredEpisode {
  id: string;
}

export interface SearchOptions {
  k?: number;
  threshold?: number;
  gamma?: number;
  exclude_task?: string;
  cursor?: string;
}
export interface SearchRequest extends SearchOptions {
  state: string;
}

export interface StoredFeedback {
  id?: string;
  episode_id?: string | null;
  feedback_id?: string;
  revoked?: string;
}

export interface LiftArm {
  n_assigned: number;
  n_rated: number;
  n_aborted: number;
  mean: number | null;
}
export interface Lift {
  family: string;
  epoch?: string;
  /** The mean outcome with memory less without; null before a rating. */
  mean: number | null;
  low: number;
  high: number;
  level: number;
  state: "learning" | "proven" | "harmful" | "unclear";
  e_value?: number;
  is_off?: boolean;
  control_share?: number;
  n_treated?: number;
  n_control?: number;
  treated: LiftArm;
  control: LiftArm;
  warnings?: string[];
}
export interface Lifts {
  /** Seconds since 1970. */
  as_of: number;
  families: Lift[];
}

/** The body of every refusal. */
export interface Problem {
  error: string;
  seen: string;
  rule: string;
  next: string;
}
