"""Task stores: every logical write, refusal and deletion, and the reads that decide something.

A save may pass several layers (adapter over store, subclass calling ``super``, a copy in between). They
are one write: the outermost call is what the caller got, the innermost what was stored.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Any

from opentelemetry import context as otel_context
from opentelemetry import trace

from a2a_fencing import conventions as c
from a2a_fencing import internal_errors, recorder
from a2a_fencing.facts import TaskKey, Version
from a2a_fencing.guard import in_force
from a2a_fencing.hooks import scope as scopes
from a2a_fencing.hooks import write as writes
from a2a_fencing.hooks.leaving import detach
from a2a_fencing.hooks.memory import TaskMemory
from a2a_fencing.hooks.outcome import WriteOutcomes, record_read
from a2a_fencing.hooks.patches import Patches
from a2a_fencing.hooks.sdk import (
    ConcurrentTaskModificationError,
    TaskStore,
    VersionedTaskStore,
    database_store,
)
from a2a_fencing.hooks.store_rule import StoreRule
from a2a_fencing.hooks.stores import StoreIdentities, is_versioned
from a2a_fencing.hooks.tasks import state_of, version_of
from a2a_fencing.hooks.write import Write, inside_store, is_inside_store
from a2a_fencing.recorder import Recorder

Method = Callable[..., Awaitable[Any]]


class StoreHooks:
    """What happens around ``save``, ``get`` and ``delete``.

    Args:
        memory: What this process knows of stored tasks.
        identities: How stores are named.
        audit: Re-read the stored state before each write.
    """

    def __init__(self, memory: TaskMemory, identities: StoreIdentities, *, audit: bool = False) -> None:
        self._memory = memory
        self._identities = identities
        self._audit = audit
        self._outcomes = WriteOutcomes(memory)
        self._rule = StoreRule()

    def install(self, patches: Patches) -> list[str]:
        """Hooks every override of the abstract store methods, in classes that exist and come later.

        Returns the targets this SDK does not have.
        """
        for base in (VersionedTaskStore, TaskStore):
            if base is not None:
                patches.wrap_overrides(base, "save", self.save)
                patches.wrap_overrides(base, "get", self.get)
                patches.wrap_overrides(base, "delete", self.delete)
        if database_store is None:
            return []
        return patches.wrap_all(
            (database_store, "database_task_store", "_is_transient", self.worth_another_try)
        )

    def adopt(self, patches: Patches, store: Any) -> None:
        """Hooks the class of a store that derives from no SDK class."""
        for name, wrapper in (("save", self.save), ("get", self.get), ("delete", self.delete)):
            patches.adopt(type(store), name, wrapper)

    def renew(self, process: str) -> None:
        """In a forked child: names stores anew."""
        self._identities.renew(process)

    def key_of(self, store: Any, context: Any, task_id: str) -> TaskKey:
        """The task key under which facts about this task go."""
        identity = self._identities.of(store)
        return self._memory.key(identity.name, identity.owner_of(context), task_id)

    def writer_of(self, recorder_: Recorder, store: Any) -> str:
        """The writer label of a store object."""
        return recorder_.writer(self._identities.of(store).number)

    # --- save ---

    async def save(self, wrapped: Method, store: Any, args: Any, kwargs: Any) -> Any:
        """Around a save: one fact for the outermost call, whatever layers it passes."""
        rec = recorder.active()
        if rec is None:
            return await wrapped(*args, **kwargs)
        outer = writes.latest()
        task = args[0] if args else kwargs.get("task")
        if outer is not None and not outer.ended and outer.key.task_id == getattr(task, "id", None):
            if await self._holds_back_layer(outer, store, kwargs):
                wrapped = _refuse
            return await outer.layer(wrapped, args, kwargs)
        try:
            write = self._begin(rec, store, task, args, kwargs)
            inside = trace.set_span_in_context(write.span) if rec.nests else None
            if self._audit:
                await self._audit_read(rec, write)
            guarded = in_force().store and await self._rule.holds_back(write, store)
        except Exception as error:
            internal_errors.report("before a save", error)
            return await wrapped(*args, **kwargs)
        turn = write.turn
        if turn is not None:
            turn.saving += 1
        write_token = writes.enter(write)
        token = otel_context.attach(inside) if inside is not None else None
        try:
            if guarded:
                self._outcomes.held_back(rec, write)
                raise ConcurrentTaskModificationError(task.id)
            result = await wrapped(*args, **kwargs)
        except ConcurrentTaskModificationError as error:
            if not guarded:
                await self._outcomes.refused(rec, write, error)
            raise
        except BaseException as error:
            self._outcomes.failed(rec, write, error)
            raise
        else:
            self._outcomes.returned(rec, write, result)
            return result
        finally:
            if token is not None:
                detach(token)
            writes.leave(write, write_token)
            if not write.told:
                rec.later(write.end_span, time.time_ns())
            if turn is not None:
                turn.saving -= 1
                if turn.waiting:
                    turn.saved()

    async def _holds_back_layer(self, write: Write, store: Any, kwargs: Any) -> bool:
        """Whether the guard refuses a save inside a save.

        An outer layer may put the write on another base, such as what it reloads after a conflict.
        """
        try:
            base = version_of(kwargs.get("prev_version"))
            if base != write.base and (write.base is None or type(base) is type(write.base)):
                write.rest_on(base)
            guards = in_force().store and is_versioned(store)
            return guards and await self._rule.holds_back(write, store)
        except Exception as error:
            internal_errors.report("before a save inside a save", error)
            return False

    def worth_another_try(self, wrapped: Callable[..., bool], _: Any, args: Any, kwargs: Any) -> bool:
        """Around the store's question whether to repeat a try that failed, which counts the tries."""
        write = writes.current()
        if write is not None and not is_inside_store():
            write.failed_once(args[0] if args else kwargs["error"])
        return wrapped(*args, **kwargs)

    def _begin(self, rec: Recorder, store: Any, task: Any, args: Any, kwargs: Any) -> Write:
        context = kwargs["context"] if "context" in kwargs else args[-1]
        event = kwargs.get("event")
        base = version_of(kwargs.get("prev_version"))
        scope = scopes.current()
        turn, origin, named = None, c.DIRECT, None
        if scope is not None:
            turn, origin = scope.turn, scope.origin
            scope.writes += 1
            if event is None:
                event = scope.event
        if turn is None:
            above = otel_context.get_current()
        else:
            above = turn.context
            named = turn.own_key(rec, store, context, task.id)
        if turn is not None and named is not None:
            writer = turn.writer
        else:
            named, writer = self.key_of(store, context, task.id), self.writer_of(rec, store)
        record = self._memory.record(named)
        if turn is None:
            turn = scopes.turn_in()
        return Write(store, task, context, record, writer, base, event, origin, turn, rec.tracer, above)

    async def _audit_read(self, rec: Recorder, write: Write) -> None:
        """Re-reads the stored task before the write, to find writers that bypass the SDK."""
        try:
            with inside_store():
                stored = await write.store.get(write.task.id, write.context)
        except Exception:
            return  # the store cannot be read (its tables may not exist yet); the save will tell
        if stored is not None:
            task = getattr(stored, "task", stored)
            version = version_of(getattr(stored, "version", None))
            state = state_of(task)
            record_read(rec, write.key, write.writer, c.AUDIT, version, state, write.span)

    # --- get ---

    async def get(self, wrapped: Method, store: Any, args: Any, kwargs: Any) -> Any:
        """Around a read: remembers what is stored; a fact only where the read decides something."""
        rec = recorder.active()
        if rec is None or is_inside_store():
            return await wrapped(*args, **kwargs)
        token = writes.enter_store()
        try:
            stored = await wrapped(*args, **kwargs)
        finally:
            writes.leave_store(token)
        try:
            if stored is not None:
                self._saw(rec, store, stored, args, kwargs)
        except Exception as error:
            internal_errors.report("after a read", error)
        return stored

    def _saw(self, rec: Recorder, store: Any, stored: Any, args: Any, kwargs: Any) -> None:
        task = getattr(stored, "task", stored)
        version = version_of(getattr(stored, "version", None))
        state = state_of(task)
        context = kwargs["context"] if "context" in kwargs else args[-1]
        key = self.key_of(store, context, task.id)
        record = self._memory.record(key)
        record.saw(version, state)
        scope = scopes.current()
        origin = scope.read_as if scope is not None else None
        if record.unresolved is not False:
            record.unresolved = False
            origin = origin or c.RESOLUTION
        if origin is not None:
            if scope is not None:
                scope.read_as = None
            span = scope.turn.span if scope is not None and scope.turn is not None else None
            record_read(rec, key, self.writer_of(rec, store), origin, version, state, span)

    # --- delete ---

    async def delete(self, wrapped: Method, store: Any, args: Any, kwargs: Any) -> Any:
        """Around a deletion, which ends the task's incarnation."""
        rec = recorder.active()
        if rec is None or is_inside_store():
            return await wrapped(*args, **kwargs)
        before = self._version_known(store, args, kwargs)
        with inside_store():
            try:
                result = await wrapped(*args, **kwargs)
            except Exception as error:
                if await _has_ended(store, args, kwargs, before):
                    self._deleted(rec, store, args, kwargs, error_type=type(error).__qualname__)
                raise
        self._deleted(rec, store, args, kwargs)
        return result

    def _version_known(self, store: Any, args: Any, kwargs: Any) -> Version:
        """The version of a task that is to be deleted, where this process knows."""
        try:
            task_id, context = _which(args, kwargs)
            known = self._memory.latest(self.key_of(store, context, task_id))
        except Exception as error:
            internal_errors.report("before a deletion", error)
            return None
        return known.version if known is not None else None

    def _deleted(
        self, rec: Recorder, store: Any, args: Any, kwargs: Any, error_type: str | None = None
    ) -> None:
        try:
            task_id, context = _which(args, kwargs)
            key = self.key_of(store, context, task_id)
            known = self._memory.latest(key)
            rec.record(
                c.DELETED,
                None,
                task=key,
                writer=self.writer_of(rec, store),
                base_version=known.version if known is not None else None,
                base_state=known.state if known is not None else None,
                error_type=error_type,
            )
            self._memory.record(key).deleted()
        except Exception as failure:
            internal_errors.report("after a deletion", failure)


async def _refuse(*args: Any, **kwargs: Any) -> None:
    """What stands in for a save that the guard refuses."""
    raise ConcurrentTaskModificationError((args[0] if args else kwargs["task"]).id)


def _which(args: Any, kwargs: Any) -> tuple[str, Any]:
    """Task id and context of a deletion."""
    return (
        args[0] if args else kwargs["task_id"],
        kwargs["context"] if "context" in kwargs else args[-1],
    )


async def _has_ended(store: Any, args: Any, kwargs: Any, before: Version) -> bool:
    """Whether a deletion that failed ended the task's incarnation all the same.

    The SDK deletes the row of a task and then its versions: a save between the two leaves a row without
    a version, and one after both begins anew. Where no version was known before, a row without one may
    never have had any.
    """
    try:
        stored = await store.get(*_which(args, kwargs))
        version = version_of(getattr(stored, "version", None))
    except Exception:
        return False  # it cannot be told
    if stored is None or before is None:
        return stored is None
    if version is None:
        return is_versioned(store)
    return isinstance(version, int) and isinstance(before, int) and version < before
