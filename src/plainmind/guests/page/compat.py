"""What other vendors' clients ask for, below `/compat`: addresses, which right each needs, refusals in their words."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from plainmind.base.errors import PlainmindError
from plainmind.guests.page import mem0, stores
from plainmind.guests.page.call import Call, Reply
from plainmind.guests.page.table import Operation
from plainmind.guests.page.wire import Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

COMPAT = "/compat/"

_STORE = "/compat/anthropic/v1/memory_stores/{store}"
_ANTHROPIC = (
    ("GET", "/compat/anthropic/v1/memory_stores", "read", stores.list_memory_stores),
    ("POST", "/compat/anthropic/v1/memory_stores", "write", stores.create_memory_store),
    ("GET", _STORE, "read", stores.read_memory_store),
    ("GET", _STORE + "/memories", "read", stores.list_memories),
    ("POST", _STORE + "/memories", "write", stores.create_memory),
    ("GET", _STORE + "/memories/{memory}", "read", stores.read_memory),
    ("POST", _STORE + "/memories/{memory}", "write", stores.update_memory),
    ("DELETE", _STORE + "/memories/{memory}", "write", stores.delete_memory),
    ("GET", _STORE + "/memory_versions", "read", stores.list_versions),
    ("GET", _STORE + "/memory_versions/{version}", "read", stores.read_version),
    ("POST", _STORE + "/memory_versions/{version}/redact", "forget", stores.redact_version),
)
_OPENAI = (
    ("GET", "/compat/openai/v1/vector_stores", "read", stores.list_vector_stores),
    ("GET", "/compat/openai/v1/vector_stores/{store}", "read", stores.read_vector_store),
    ("POST", "/compat/openai/v1/vector_stores/{store}/search", "read", stores.search_vectors),
)
_QMD = (
    ("GET", "/compat/qmd/health", "", stores.tell_health),
    ("POST", "/compat/qmd/query", "read", stores.query),
    ("POST", "/compat/qmd/search", "read", stores.query),
)
_MEM0 = (
    ("GET", "/compat/mem0/v1/ping/", "read", mem0.ping),
    ("POST", "/compat/mem0/v3/memories/add/", "write", mem0.add),
    ("POST", "/compat/mem0/v1/memories/", "write", mem0.add),
    ("POST", "/compat/mem0/v3/memories/", "read", mem0.list_all),
    ("POST", "/compat/mem0/v2/memories/", "read", mem0.list_all),
    ("POST", "/compat/mem0/v3/memories/search/", "read", mem0.search),
    ("POST", "/compat/mem0/v2/memories/search/", "read", mem0.search),
    ("DELETE", "/compat/mem0/v1/memories/", "forget", mem0.delete_all),
    ("GET", "/compat/mem0/v1/memories/{memory}/", "read", mem0.read),
    ("PUT", "/compat/mem0/v1/memories/{memory}/", "write", mem0.update),
    ("DELETE", "/compat/mem0/v1/memories/{memory}/", "forget", mem0.delete),
    ("GET", "/compat/mem0/v1/memories/{memory}/history/", "read", mem0.history),
    ("GET", "/compat/mem0/v1/entities/", "read", mem0.list_users),
    ("DELETE", "/compat/mem0/v2/entities/user/{user}/", "forget", mem0.delete_user),
)


def compatible_operations() -> tuple[Operation, ...]:
    """All of them; what they take and give is their vendors' to document, and not a part of `/v1`."""
    every = (*_ANTHROPIC, *_OPENAI, *_QMD, *_MEM0)
    return tuple(
        Operation(method, path, "", _checked(handle), None, right=right)
        for method, path, right, handle in every
    )


def _checked(handle: Callable[[Call], Reply]) -> Callable[[Call], Reply]:
    """Hand on only what is an object."""

    def checked(call: Call) -> Reply:
        if call.body is not None and not isinstance(call.body, dict):
            raise PlainmindError("the body must be a JSON object", hint="see the vendor's documentation")
        return handle(call)

    return checked


_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    409: "conflict_error",
    413: "request_too_large",
    503: "overloaded_error",
}


def refusal(path: str, problem: Problem) -> Reply:
    """A problem as the client of that vendor reads it; the sentence is ours."""
    status = 409 if problem.status in {412, 428} else problem.status
    message = f"{problem}; {problem.hint}" if problem.hint else str(problem)
    vendor = path.removeprefix(COMPAT).partition("/")[0]
    kind = _TYPES.get(status, "api_error")
    told: Mapping[str, Any]
    if vendor == "anthropic":
        told = {"type": "error", "error": {"type": kind, "message": message}}
    elif vendor == "openai":
        told = {"error": {"message": message, "type": kind, "param": None, "code": problem.kind}}
    elif vendor == "mem0":
        told = {"detail": message, "error": message}
    else:
        told = {"error": message}
    return Reply(dict(told), status, headers=problem.headers)
