"""A versioned task store in memory, which behaves like a database and can be made to forget a rule."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from a2a.server.owner_resolver import resolve_user_scope
from a2a.server.tasks.inmemory_task_store import InMemoryTaskStore
from a2a.types.a2a_pb2 import Task

from a2a_fencing import conventions as c
from a2a_fencing.hooks.sdk import ConcurrentTaskModificationError, VersionedTaskStore, find
from a2a_fencing.hooks.tasks import state_of

TaskVersion = find("a2a.server.cluster.version:TaskVersion")
StoredTask = find("a2a.server.cluster.task_store:StoredTask")

_Base: Any = VersionedTaskStore or object


class InMemoryVersionedTaskStore(_Base):  # type: ignore[misc]
    """Keeps tasks in memory with a version that counts their writes from 1.

    Tasks are copied in and out, so what a caller does to its copy is not stored. Several handlers may
    share one store, as replicas share a database.

    Args:
        terminal_rule: Refuse every write on a finished task. False models a store that only compares
            versions and lets even a cancel replace what is finished, which shows what the other side
            does without that help.
        owner_resolver: Whose tasks a call context sees.

    Raises:
        RuntimeError: The installed SDK has no versioned stores.
    """

    def __init__(
        self,
        *,
        terminal_rule: bool = True,
        owner_resolver: Callable[[Any], str] = resolve_user_scope,
    ) -> None:
        if VersionedTaskStore is None:
            raise RuntimeError("this a2a-sdk has no versioned stores; 1.2 and newer have")
        self.owner_resolver = owner_resolver
        self._terminal_rule = terminal_rule
        self._stored: dict[tuple[str, str], Any] = {}
        self._lists = InMemoryTaskStore(owner_resolver=owner_resolver)
        self._lock = asyncio.Lock()

    async def save(
        self,
        task: Any,
        *,
        event: Any = None,
        prev: Any = None,
        prev_version: Any,
        context: Any,
    ) -> Any:
        """Stores a copy if `prev_version` is what is stored; a cancel needs no version.

        Raises:
            ConcurrentTaskModificationError: It is not, or the task is finished (`terminal_rule`), or
                there is nothing to cancel.
        """
        key = self._key(task.id, context)
        async with self._lock:
            stored = self._stored.get(key)
            if self._refuses(stored, task, prev_version):
                raise ConcurrentTaskModificationError(task.id)
            version = TaskVersion(stored.version._value + 1 if stored is not None else 1)
            await self._lists.save(task, context)
            self._stored[key] = StoredTask(_copy(task), version)
            return version

    async def get(self, task_id: str, context: Any) -> Any:
        """A copy of the stored task with its version, or None."""
        stored = self._stored.get(self._key(task_id, context))
        return StoredTask(_copy(stored.task), stored.version) if stored is not None else None

    async def list(self, params: Any, context: Any) -> Any:
        """Stored tasks, as the SDK's own in-memory store lists them."""
        return await self._lists.list(params, context)

    async def delete(self, task_id: str, context: Any) -> None:
        """Forgets a task and its version."""
        async with self._lock:
            await self._lists.delete(task_id, context)
            self._stored.pop(self._key(task_id, context), None)

    def _key(self, task_id: str, context: Any) -> tuple[str, str]:
        return self.owner_resolver(context), task_id

    def _refuses(self, stored: Any, task: Any, base: Any) -> bool:
        cancels = state_of(task) == c.CANCELED
        if stored is None:
            return cancels or not base.is_missing
        if self._terminal_rule and state_of(stored.task) in c.TERMINAL_STATES:
            return True
        return not cancels and stored.version != base


def _copy(task: Task) -> Task:
    copy = Task()
    copy.CopyFrom(task)
    return copy
