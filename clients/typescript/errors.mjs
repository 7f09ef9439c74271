// Errors: what was seen, the rule it broke, and the next step, as everywhere in seasoned.
//
//   SeasonedError
//   ├── SeasonedRequestError     the service refused the request (4xx)
//   ├── SeasonedServerError      the service failed (5xx)
//   ├── SeasonedAnswerError      what answered is not the service, or its answer cannot be read
//   ├── SeasonedConnectionError  the service cannot be reached, or does not start
//   └── SeasonedTimeoutError     no answer in time
//
// A request that its caller aborts rejects with the reason of the caller's signal, and with none of these.

export class SeasonedError extends Error {
  constructor(seen, rule, next, { kind, status, cause } = {}) {
    super(`${seen}: ${rule}. ${next}`, cause === undefined ? undefined : { cause });
    this.name = new.target.name;
    this.seen = seen;
    this.rule = rule;
    this.next = next;
    this.kind = kind ?? "InputError";
    this.status = status;
  }
}

export class SeasonedRequestError extends SeasonedError {}
export class SeasonedServerError extends SeasonedError {}
export class SeasonedAnswerError extends SeasonedError {}
export class SeasonedConnectionError extends SeasonedError {}
export class SeasonedTimeoutError extends SeasonedError {}

// Return the error of an answer with another status than 2xx. Addresses of model APIs have another shape of errors.
export function errorOfAnswer(status, document, where) {
  const Kind = status >= 500 ? SeasonedServerError : SeasonedRequestError;
  const texts = ["seen", "rule", "next"].map((name) => document?.[name]);
  if (texts.every((text) => typeof text === "string")) {
    return new Kind(texts[0], texts[1], texts[2], { kind: String(document.error), status });
  }
  const message = document?.error?.message;
  if (typeof message === "string") {
    return new Kind(message, `${where} was answered ${status}`, "Correct the request.", {
      kind: String(document.error.code ?? document.error.type),
      status,
    });
  }
  return unreadable(`an answer ${status} of ${where} that is no error of seasoned`, status);
}

// Return the error of an answer whose field is missing, or has a value of another type.
export function errorOfField(name, type, value, where) {
  const kind = value === null ? "null" : Array.isArray(value) ? "a list" : `a ${typeof value}`;
  const is = value === undefined ? "is missing" : `is ${kind} and no ${type}`;
  return unreadable(`an answer of ${where} in which "${name}" ${is}`, 200);
}

function unreadable(seen, status) {
  return new SeasonedAnswerError(
    seen,
    "the address is that of a seasoned service",
    "Check the url, and what stands between: a proxy may answer in its place.",
    { kind: "AnswerError", status },
  );
}
