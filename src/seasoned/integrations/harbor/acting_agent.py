"""Our agent in a Harbor trial: it acts in the container's shell, with past steps in its prompts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from seasoned.agents import Agent, Templates
from seasoned.agents.loop.usage_meter import UsageMeter, measure_usage
from seasoned.checks import check_text
from seasoned.errors import ConfigError
from seasoned.integrations.harbor.agent_options import open_examples, version
from seasoned.integrations.harbor.container import DONE, ContainerShell
from seasoned.integrations.harbor.grader_fence import working_folder
from seasoned.integrations.harbor.trajectory import TrajectoryLog
from seasoned.llms import open_llm
from seasoned.protocols import LLM

__all__ = ["ActingAgent"]

_SYSTEM = (
    "You work in the shell of a Linux container, one command line at a time, each in a fresh shell in the same folder "
    f"(a `cd` lasts for its own line). No command may wait for input. When the task is done, the action is: {DONE}"
)


class ActingAgent:
    """Plans, reasons and acts with our model; the best past steps are in its prompts (`seasoned.agents.Agent`).

    `harbor run --agent seasoned.integrations.harbor:SeasonedAgent --model openai/gpt-4o-mini --ak memory=agent.db
    --ak mode=train ...`. It writes its trajectory (ATIF) into the trial's agent folder. The memory is opened read-only,
    since the reward of a trial is not known while it runs. Learn from a finished job with `import_job`, or at its end
    with the plugin `LearnFromJob`.

    It has no access to the grader: it reads no file of the trial or the task, and runs no command that names the
    grader's files (`grader_fence`).

    Options (`--ak NAME=VALUE`): `memory`, a file or `postgresql://...`, opened read-only in every mode; in `train` it
    may not exist yet. `namespace`. `mode`: `test` (the default) forbids learning from the trial, `train` allows
    importing its reward afterwards. `k`, `window`, `budget_tokens` of the examples
    (`seasoned.policies.examples.Examples`). `llm`: a model's specification (`local`, `openai:...`) instead of Harbor's
    `--model` by LiteLLM. `plan`, `calls`, `max_tokens` as for `seasoned.agents.Agent`; `max_steps` commands in a trial
    (50), `command_timeout_s` for one (120).
    """

    logs_dir: Path
    model_name: str | None
    options: Any
    session_id: str | None
    context_id: Any
    _cwd: str | None = None

    @staticmethod
    def name() -> str:
        """The agent's name in results."""
        return "seasoned"

    def version(self) -> str:
        """The version of seasoned."""
        return version()

    def open_model(self) -> LLM:
        """Return the model; override it for your own.

        Raises:
            ConfigError: none is named.
            SeasonedError: as for `seasoned.llms.open_llm`.
        """
        if self.options.llm is not None:
            return open_llm(self.options.llm)
        if not self.model_name:
            raise ConfigError("no model", "the agent needs a model", "Pass --model PROVIDER/MODEL, or --ak llm=local.")
        return open_llm(f"litellm:{self.model_name}")

    async def setup(self, environment: Any) -> None:
        """Read the working folder of the container; nothing is installed."""
        self._cwd = working_folder(await environment.exec("pwd"))

    async def run(self, instruction: str, environment: Any, context: Any) -> None:
        """Work on a task until the action `done`, or the last step.

        Raises:
            NotFoundError, StoreError: the memory cannot be opened.
            ModelError, EnvError: the model or the container failed; the trajectory so far is written.
        """
        check_text("instruction", instruction)
        options = self.options
        llm = self.open_model()
        memory, examples = open_examples(options)
        log = TrajectoryLog(
            Path(self.logs_dir) / "trajectory.json",
            instruction,
            agent={"name": self.name(), "version": self.version(), "model_name": llm.name},
            session_id=str(self.context_id or self.session_id or "seasoned"),
            mode=options.mode,
        )
        shell = ContainerShell(environment, instruction, cwd=self._cwd, timeout_s=options.command_timeout_s)
        context.metadata = {"mode": options.mode, "examples": examples is not None}
        meter = UsageMeter()  # counts calls without a step, too
        try:
            agent = Agent(
                llm,
                examples=examples,
                plan=options.plan,
                calls=options.calls,
                canonical=str.strip,
                templates=Templates(system=_SYSTEM),
                max_steps=options.max_steps,
                max_tokens=options.max_tokens,
                on_step=log.add,
            )
            with measure_usage() as meter:
                result = await agent.run(shell)
            log.end(result.usage, truncated=result.ending == "truncated")
        finally:
            spent = meter.usage
            context.n_input_tokens, context.n_output_tokens = spent.prompt_tokens, spent.completion_tokens
            context.cost_usd = spent.cost_usd
            context.metadata |= {"refused_commands": shell.refused}
            if memory is not None:
                memory.close()
            await llm.aclose()
