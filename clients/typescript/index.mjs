export { Seasoned } from "./client.mjs";
export { Episode } from "./episode.mjs";
export {
  SeasonedAnswerError,
  SeasonedConnectionError,
  SeasonedError,
  SeasonedRequestError,
  SeasonedServerError,
  SeasonedTimeoutError,
} from "./errors.mjs";
