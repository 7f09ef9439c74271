"""Wrapper of any Harbor agent: examples from a memory in its instruction, and no access to the grader's files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from seasoned.integrations.harbor.agent_options import open_examples, version, wrapping_options
from seasoned.integrations.harbor.grader_fence import grader_path, working_folder
from seasoned.integrations.harbor.harbor_package import load_harbor
from seasoned.integrations.harbor.job_import import EXAMPLES_MARK
from seasoned.policies.examples import ExampleQuery, render

__all__ = ["GuardedContainer", "WrappedAgent"]

_PATH_ARGUMENTS = {
    "download_file": 0,
    "download_dir": 0,
    "download_dir_with_exclusions": 0,
    "download_dir_filtered": 0,
    "upload_file": 1,
    "upload_dir": 1,
    "is_dir": 0,
    "is_file": 0,
}
"""Index of the argument of a method that is a path in the container."""
_PATH_NAMES = ("source_path", "target_path", "source_dir", "target_dir", "path")


class GuardedContainer:
    """A container that refuses commands and file transfers that name the grader's files; else unchanged.

    `refused` lists the refused commands and transfers.

    Args:
        environment: the container.
        cwd: working folder of its commands; None: unknown.
    """

    def __init__(self, environment: Any, cwd: str | None = None) -> None:
        self._environment = environment
        self._cwd = cwd
        self.refused: list[str] = []

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._environment, name)
        if name not in _PATH_ARGUMENTS:
            return attribute

        async def guarded(*arguments: Any, **named: Any) -> Any:
            position = _PATH_ARGUMENTS[name]
            paths = [*arguments[position : position + 1]]
            paths += [named[key] for key in _PATH_NAMES if key in named and (position == 0) != key.startswith("target")]
            for path in map(str, paths):
                if grader_path(path) is not None:
                    self.refused.append(f"{name} {path}")
                    raise PermissionError(f"{path} belongs to the grader of this task")
            return await attribute(*arguments, **named)

        return guarded

    async def exec(self, command: str, cwd: str | None = None, *arguments: Any, **named: Any) -> Any:
        """Run a command, or refuse it."""
        if (path := grader_path(command, cwd or self._cwd)) is not None:
            return self._refuse(command, path)
        return await self._environment.exec(command, cwd, *arguments, **named)

    async def service_exec(self, command: str, *arguments: Any, **named: Any) -> Any:
        """Run a command in another container of the task, or refuse it."""
        if (path := grader_path(command, named.get("cwd"))) is not None:
            return self._refuse(command, path)
        return await self._environment.service_exec(command, *arguments, **named)

    def _refuse(self, command: str, path: str) -> Any:
        self.refused.append(command)
        answer = load_harbor("harbor.environments.base").ExecResult
        return answer(stdout="", stderr=f"refused: {path} belongs to the grader of this task", return_code=126)


class WrappedAgent:
    """Wraps an agent: past steps that fit the task follow its instruction, after a mark.

    `harbor run --agent seasoned.integrations.harbor:WithExamples --ak agent=terminus-2 --ak memory=agent.db --ak
    mode=train ...`. It has the options of `ActingAgent`, but `agent` (a name or an import path) and `agent_kwargs` in
    place of those of a model and its acting. The wrapped agent writes its own trajectory; if it is ATIF, `import_job`
    imports it, without the text after the mark. In every mode the memory is opened read-only, and the container is a
    `GuardedContainer`.
    """

    options: Any
    session_id: str | None
    context_id: Any
    _cwd: str | None = None

    def __init__(self, logs_dir: Path, model_name: str | None = None, **settings: Any) -> None:
        super().__init__(logs_dir, model_name, **settings)  # type: ignore[call-arg]  # Harbor's
        inherited = {name: value for name, value in settings.items() if name not in wrapping_options().model_fields}
        environment = inherited.pop("extra_env", None) or {}
        factory = load_harbor("harbor.agents.factory").AgentFactory
        config = load_harbor("harbor.models.trial.config").AgentConfig
        self.inner: Any = factory.create_agent_from_config(
            config(
                name=self.options.agent, model_name=model_name, kwargs=self.options.agent_kwargs or {}, env=environment
            ),
            logs_dir=logs_dir,
            **inherited,
        )

    @staticmethod
    def name() -> str:
        """The agent's name in results."""
        return "seasoned-with-examples"

    def version(self) -> str:
        """The versions of seasoned and of the wrapped agent."""
        return f"{version()}+{self.inner.name()}-{self.inner.version()}"

    async def setup(self, environment: Any) -> None:
        """Read the working folder of the container, and set up the wrapped agent."""
        self._cwd = working_folder(await environment.exec("pwd"))
        self.inner.session_id, self.inner.context_id = self.session_id, self.context_id
        await self.inner.setup(environment)

    async def run(self, instruction: str, environment: Any, context: Any) -> None:
        """Run the wrapped agent on the instruction, followed by examples.

        Raises:
            NotFoundError, StoreError: the memory cannot be opened.
        """
        memory, examples = open_examples(self.options)
        shown: Any = ()
        if memory is not None and examples is not None:
            with memory:
                shown = examples.retrieve(ExampleQuery(goal=instruction), purpose="plan")
        guarded = GuardedContainer(environment, self._cwd)
        extended = f"{instruction}\n\n{EXAMPLES_MARK}\n{render(shown)}" if shown else instruction
        try:
            await self.inner.run(extended, guarded, context)
        finally:
            context.metadata = (context.metadata or {}) | {
                "mode": self.options.mode,
                "refused_commands": len(guarded.refused),
                "shown": [[one.episode_id, one.step] for one in shown],
            }
