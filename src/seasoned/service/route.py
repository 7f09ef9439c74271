"""Routes: an address with its handler, and the request that a handler receives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from seasoned.memory import Memory
from seasoned.service.memory_pool import MemoryPool
from seasoned.service.schemas import ERROR_DESCRIPTIONS, PROBLEM_SCHEMA

__all__ = ["Route", "ServiceRequest"]


@dataclass(frozen=True, slots=True)
class ServiceRequest:
    """A request: the served memories, and the parameters of its path, its query and its body."""

    pool: MemoryPool
    path: Mapping[str, str]
    query: Mapping[str, str]
    body: Mapping[str, Any]

    @property
    def memory(self) -> Memory:
        """The memory of the request's namespace."""
        return self.pool.memory(self.query.get("namespace"))


@dataclass(frozen=True, slots=True)
class Route:
    """An address with its handler, its body's JSON Schema (or a function that returns it) and its query parameters."""

    method: str
    path: str
    handler: Callable[[ServiceRequest], Any]
    summary: str
    body: Mapping[str, Any] | Callable[[], Mapping[str, Any]] | None = None
    status: int = 200
    query: tuple[str, ...] = ("namespace",)

    def openapi(self, *, secured: bool) -> dict[str, Any]:
        """Return the OpenAPI document without the summary: parameters, the body's schema, the token."""
        names = [part.strip("{}").removesuffix(":path") for part in self.path.split("/") if part.startswith("{")]
        text = {"type": "string"}
        parameters = [{"name": name, "in": "path", "required": True, "schema": text} for name in names]
        parameters += [{"name": name, "in": "query", "required": False, "schema": text} for name in self.query]
        document: dict[str, Any] = {"parameters": parameters}
        if self.body is not None:
            schema = self.body() if callable(self.body) else self.body
            document["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
        if secured and self.path.startswith("/v1/"):
            document["security"] = [{"token": []}]
        return document

    def responses(self) -> dict[int | str, dict[str, Any]]:
        """Return the error responses, for OpenAPI."""
        if not self.path.startswith("/v1/"):
            return {}
        statuses = set(ERROR_DESCRIPTIONS) if self.body is not None else set(ERROR_DESCRIPTIONS) - {409, 413, 415}
        content = {"application/json": {"schema": PROBLEM_SCHEMA}}
        return {status: {"description": ERROR_DESCRIPTIONS[status], "content": content} for status in sorted(statuses)}
