// A middleware for the AI SDK: memory's block in each call of a model, and the conversation as an episode.

import { SeasonedError } from "./errors.mjs";

const MODES = ["examples", "advise", "observe"];

export function seasonedMiddleware(episode, { mode = "examples", failOpen = true, timeoutMs = 1_000, onError = () => {}, specificationVersion = "v3" } = {}) {
  if (!MODES.includes(mode)) {
    throw new SeasonedError(`mode = ${String(mode)}`, `a mode is ${MODES.join(", ")}`, "Pass one of them.");
  }
  const episodeOf = typeof episode === "function" ? episode : () => episode;
  const calls = new WeakMap(); // by the parameters that the model gets

  async function transformParams({ params, model }) {
    let changed = { ...params };
    try {
      const own = await episodeOf(params);
      if (own === undefined || own === null) return params;
      const call = { own, messages: chatMessages(params.prompt), shown: [] };
      calls.set(changed, call);
      own.model ??= model?.modelId;
      if (mode === "observe") return changed;
      const tools = (params.tools ?? []).map((tool) => tool.name);
      const found = await own.recall(call.messages, { mode, tools, signal: params.abortSignal, timeoutMs });
      const prompt = found.block === "" ? undefined : withBlock(params.prompt, found.block);
      if (prompt !== undefined) {
        call.shown = found.shown;
        changed = { ...changed, prompt };
        calls.set(changed, call);
      }
    } catch (error) {
      if (params.abortSignal?.aborted || !failOpen) throw error;
      onError(error); // the model is asked without memory
    }
    return changed;
  }

  function converse(params, content) {
    const call = calls.get(params);
    if (call === undefined) return;
    try {
      const answer = assistantMessage(content);
      if (answer !== undefined) call.own.converse(call.messages, answer, call.shown);
    } catch (error) {
      if (!failOpen) throw error;
      onError(error); // such as that the episode has ended: the answer is the caller's all the same
    }
  }

  return {
    specificationVersion,
    transformParams,
    async wrapGenerate({ doGenerate, params }) {
      const result = await doGenerate();
      converse(params, result.content);
      return result;
    },
    async wrapStream({ doStream, params }) {
      const result = await doStream();
      const texts = new Map();
      const content = [];
      const heard = new TransformStream({
        transform(part, controller) {
          if (part.type === "text-start") content.push(texts.set(part.id, { type: "text", text: "" }).get(part.id));
          else if (part.type === "text-delta" && texts.has(part.id)) texts.get(part.id).text += part.delta;
          else if (part.type === "tool-call") content.push(part);
          else if (part.type === "finish") converse(params, content); // a stream that broke off has no answer
          controller.enqueue(part);
        },
      });
      return { ...result, stream: result.stream.pipeThrough(heard) };
    },
  };
}

// Return a prompt of the AI SDK as messages of Chat Completions, which the service reads.
export function chatMessages(prompt) {
  return prompt.flatMap((message) => {
    switch (message.role) {
      case "system":
        return [{ role: "system", content: message.content }];
      case "user":
        return [{ role: "user", content: message.content.map(textOfPart).join("\n") }];
      case "assistant":
        return [assistantMessage(message.content) ?? { role: "assistant", content: "" }];
      default:
        return message.content
          .filter((part) => part.type === "tool-result")
          .map((part) => ({ role: "tool", tool_call_id: part.toolCallId, content: textOfOutput(part.output) }));
    }
  });
}

function textOfPart(part) {
  return part.type === "text" ? part.text : `[file ${part.mediaType ?? "of an unknown type"}]`;
}

function textOfOutput(output) {
  switch (output.type) {
    case "text":
    case "error-text":
      return output.value;
    case "content":
      return output.value.map((part) => (part.type === "text" ? part.text : `[${part.type}]`)).join("\n");
    case "execution-denied":
      return `denied${output.reason === undefined ? "" : `: ${output.reason}`}`;
    default:
      return JSON.stringify(output.value);
  }
}

// Return what a model said as an assistant's message; undefined if it neither said anything nor called a tool.
function assistantMessage(content) {
  const text = content.filter((part) => part.type === "text").map((part) => part.text).join("");
  const calls = content
    .filter((part) => part.type === "tool-call" && !part.providerExecuted)
    .map((part) => {
      const given = typeof part.input === "string" ? part.input : JSON.stringify(part.input ?? {});
      return { id: part.toolCallId, type: "function", function: { name: part.toolName, arguments: given || "{}" } };
    });
  if (text === "" && calls.length === 0) return undefined;
  return { role: "assistant", content: text === "" ? null : text, ...(calls.length > 0 ? { tool_calls: calls } : {}) };
}

// Return a prompt with a block at the end of its last message; undefined if that is no user's and no tool's.
// The beginning stays as it is, so that providers go on caching it.
function withBlock(prompt, block) {
  const last = prompt.at(-1);
  const content = last?.role === "user" ? [...last.content, { type: "text", text: block }] : last?.role === "tool" ? withBlockInResult(last.content, block) : undefined;
  return content === undefined ? undefined : [...prompt.slice(0, -1), { ...last, content }];
}

function withBlockInResult(parts, block) {
  const at = parts.findLastIndex((part) => part.type === "tool-result" && part.output.type !== "execution-denied");
  if (at < 0) return undefined;
  const { output } = parts[at];
  const added = { ...output };
  if (output.type === "content") added.value = [...output.value, { type: "text", text: block }];
  else {
    added.type = output.type.startsWith("error") ? "error-text" : "text";
    added.value = `${textOfOutput(output)}\n\n${block}`;
  }
  return [...parts.slice(0, at), { ...parts[at], output: added }, ...parts.slice(at + 1)];
}
