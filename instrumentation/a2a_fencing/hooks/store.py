"""Task stores: every logical write, refusal and deletion, and the reads that decide something.

A save may pass several layers (adapter over store, subclass calling ``super``, a copy in between). They
are one write: the outermost call is what the caller got, the innermost what was stored.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.trace import Span, Status, StatusCode

from a2a_fencing import conventions as c
from a2a_fencing import internal_errors, recorder
from a2a_fencing.facts import Fact, TaskKey, Version
from a2a_fencing.guard import in_force
from a2a_fencing.hooks import scope as scopes
from a2a_fencing.hooks import write as writes
from a2a_fencing.hooks.memory import TaskMemory
from a2a_fencing.hooks.patches import Patches
from a2a_fencing.hooks.refusal import Attempt, Refusal, explain
from a2a_fencing.hooks.sdk import ConcurrentTaskModificationError, TaskStore, VersionedTaskStore
from a2a_fencing.hooks.store_rule import StoreRule
from a2a_fencing.hooks.stores import StoreIdentities
from a2a_fencing.hooks.tasks import event_kind, state_of, version_of
from a2a_fencing.hooks.write import Write
from a2a_fencing.recorder import Recorder

Method = Callable[..., Awaitable[Any]]

_inside: ContextVar[bool] = ContextVar("a2a_fencing_inside_store", default=False)


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
        self._rule = StoreRule(memory, _inside)

    def install(self, patches: Patches) -> None:
        """Hooks every override of the abstract store methods, in classes that exist and come later."""
        for base in (VersionedTaskStore, TaskStore):
            if base is not None:
                patches.wrap_overrides(base, "save", self.save)
                patches.wrap_overrides(base, "get", self.get)
                patches.wrap_overrides(base, "delete", self.delete)
                # Private, and only in stores that retry inside one save: it counts the tries.
                patches.wrap_overrides(base, "_save_once", self.save_once)

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
        outer = writes.current()
        task = args[0] if args else kwargs.get("task")
        if outer is not None and outer.task.id == getattr(task, "id", None):
            return await outer.layer(wrapped, args, kwargs)
        try:
            write = self._begin(rec, store, task, args, kwargs)
            if self._audit:
                await self._audit_read(rec, write)
            guarded = in_force().store and await self._rule.holds_back(write)
        except Exception as error:
            internal_errors.report("before a save", error)
            return await wrapped(*args, **kwargs)
        turn = write.turn
        if turn is not None:
            turn.saving += 1
        write_token = writes.enter(write)
        otel_token = otel_context.attach(trace.set_span_in_context(write.span))
        try:
            if guarded:
                self._hold_back(rec, write)
                raise ConcurrentTaskModificationError(task.id)
            result = await wrapped(*args, **kwargs)
        except ConcurrentTaskModificationError as error:
            if not guarded:
                await self._refused(rec, write, error)
            raise
        except BaseException as error:
            self._failed(rec, write, error)
            raise
        else:
            self._returned(rec, write, result)
            return result
        finally:
            otel_context.detach(otel_token)
            writes.leave(write_token)
            write.span.end()
            if turn is not None:
                turn.saved()

    async def save_once(self, wrapped: Method, store: Any, args: Any, kwargs: Any) -> Any:
        """Around one try of a store that retries inside a save; a try that calls super is one."""
        write = writes.current()
        if write is None or write.trying:
            return await wrapped(*args, **kwargs)
        write.trying = True
        write.tries += 1
        try:
            return await wrapped(*args, **kwargs)
        except BaseException as error:
            write.failed(error)
            raise
        finally:
            write.trying = False

    def _begin(self, rec: Recorder, store: Any, task: Any, args: Any, kwargs: Any) -> Write:
        context = kwargs["context"] if "context" in kwargs else args[-1]
        event = kwargs.get("event")
        scope = scopes.current()
        if scope is not None:
            scope.writes += 1
            event = scope.event if event is None else event
        turn = scope.turn if scope is not None else None
        key = self.key_of(store, context, task.id)
        base = version_of(kwargs.get("prev_version"))
        return Write(
            store=store,
            task=task,
            context=context,
            key=key,
            writer=self.writer_of(rec, store),
            state=state_of(task),
            base=base,
            base_known=self._memory.at(key, base),
            event=event,
            turn=turn if turn is not None else scopes.turn_in(),
            span=rec.tracer.start_span(
                c.SPAN_SAVE,
                context=turn.context if turn is not None else None,
                attributes={"a2a.task.id": task.id},
            ),
        )

    def _hold_back(self, rec: Recorder, write: Write) -> None:
        try:
            self._record(rec, write, c.TERMINAL_REJECTED, reason=c.TERMINAL)
        except Exception as failure:
            internal_errors.report("after a save held back", failure)

    def _returned(self, rec: Recorder, write: Write, result: Any) -> None:
        """The caller was told that the write succeeded."""
        try:
            if write.inner_error is not None:
                # An outer layer swallowed what the innermost one refused or failed at.
                refused = isinstance(write.inner_error, ConcurrentTaskModificationError)
                outcome = c.CONFLICT if refused else c.UNKNOWN
                self._record(rec, write, outcome, reason=c.UNEXPLAINED if refused else None)
                return
            self._accepted(rec, write, _version(result))
        except Exception as error:
            internal_errors.report("after a save", error)

    def _accepted(self, rec: Recorder, write: Write, version: Version, **values: Any) -> None:
        fact = self._record(
            rec,
            write,
            c.ACCEPTED,
            version=version,
            versioned=False if version is None else None,
            **values,
        )
        self._memory.saw(write.key, version, write.state, fact.id)
        self._memory.resolve(write.key)
        if write.turn is not None and write.turn.key == write.key:
            write.turn.version, write.turn.state = version, write.state
        if _left_terminal(fact):
            known = write.base_known
            rec.violation(
                write.span,
                task=write.key,
                rule=c.TERMINAL_OVERWRITTEN,
                witness=tuple(i for i in (known.fact_id if known else None, fact.id) if i),
                writer=fact.writer,
                state=fact.state,
                base_state=fact.base_state,
                version=version,
                base_version=fact.base_version,
            )

    async def _refused(self, rec: Recorder, write: Write, error: BaseException) -> None:
        """The caller was told that somebody else wrote; find out what really was the matter."""
        if write.was_stored:
            self._failed(rec, write, error)  # an inner layer had stored it before an outer one refused
            return
        token = _inside.set(True)
        try:
            refusal = await explain(
                Attempt(
                    write.store,
                    write.context,
                    write.task,
                    write.base,
                    retried=write.open_try > 0 or self._left_open(write),
                )
            )
        except BaseException:
            self._record_refusal(rec, write, Refusal(c.CONFLICT, c.UNEXPLAINED))
            raise
        finally:
            _inside.reset(token)
        try:
            self._record_refusal(rec, write, refusal)
        except Exception as failure:
            internal_errors.report("after a refused save", failure)

    def _record_refusal(self, rec: Recorder, write: Write, refusal: Refusal) -> None:
        outcome, reason = refusal.outcome, refusal.reason
        own = reason == c.OWN_COMMIT
        if write.open_try:
            # An error, after which the store tried again, may have hidden that this try was committed.
            self._record(rec, write, c.UNKNOWN, attempt=write.open_try)
            if reason == c.UNEXPLAINED:
                self._memory.leave_open(write.key, write.base)
                return
        version = refusal.stored_version if own else None
        fact = self._record(rec, write, outcome, reason=reason, version=version)
        if refusal.stored_state is None:
            return
        self._memory.saw(
            write.key, refusal.stored_version, refusal.stored_state, fact.id if own else None
        )
        self._memory.resolve(write.key)
        self._record_read(
            rec, write.key, write.writer, c.REFUSAL_PROBE,
            refusal.stored_version, refusal.stored_state, write.span,
        )  # fmt: skip

    def _failed(self, rec: Recorder, write: Write, error: BaseException) -> None:
        """The caller got an error that says nothing of what is stored, or its own cancellation."""
        try:
            error_type = type(error).__qualname__
            if write.was_stored:
                self._accepted(rec, write, _version(write.stored), error_type=error_type)
                return
            if isinstance(write.inner_error, ConcurrentTaskModificationError):
                self._record(rec, write, c.CONFLICT, reason=c.UNEXPLAINED, error_type=error_type)
                return
            write.span.set_status(Status(StatusCode.ERROR, error_type))
            self._record(rec, write, c.UNKNOWN, error_type=error_type)
            self._memory.leave_open(write.key, write.base)
        except Exception as failure:
            internal_errors.report("after a failed save", failure)

    def _record(self, rec: Recorder, write: Write, outcome: str, **values: Any) -> Fact:
        scope = scopes.current()
        known = write.base_known
        values.setdefault("attempt", write.attempt)
        return rec.record(
            c.WRITE,
            write.span,
            task=write.key,
            writer=write.writer,
            context_id=write.task.context_id or None,
            state=write.state,
            base_version=write.base,
            base_state=known.state if known is not None else None,
            outcome=outcome,
            origin=scope.origin if scope is not None else c.DIRECT,
            event_kind=event_kind(write.event),
            duration_ns=time.perf_counter_ns() - write.started_ns,
            **values,
        )

    def _left_open(self, write: Write) -> bool:
        open_base = self._memory.open_base(write.key)
        if open_base is False:
            return False
        return write.base is None if open_base is True else write.base == open_base

    async def _audit_read(self, rec: Recorder, write: Write) -> None:
        """Re-reads the stored task before the write, to find writers that bypass the SDK."""
        token = _inside.set(True)
        try:
            stored = await write.store.get(write.task.id, write.context)
        except Exception:
            return  # the store cannot be read (its tables may not exist yet); the save will tell
        finally:
            _inside.reset(token)
        if stored is not None:
            task = getattr(stored, "task", stored)
            version = version_of(getattr(stored, "version", None))
            state = state_of(task)
            self._record_read(rec, write.key, write.writer, c.AUDIT, version, state, write.span)

    # --- get ---

    async def get(self, wrapped: Method, store: Any, args: Any, kwargs: Any) -> Any:
        """Around a read: remembers what is stored; a fact only where the read decides something."""
        rec = recorder.active()
        if rec is None or _inside.get():
            return await wrapped(*args, **kwargs)
        token = _inside.set(True)
        try:
            stored = await wrapped(*args, **kwargs)
        finally:
            _inside.reset(token)
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
        self._memory.saw(key, version, state)
        scope = scopes.current()
        origin = scope.read_as if scope is not None else None
        if self._memory.open_base(key) is not False:
            self._memory.resolve(key)
            origin = origin or c.RESOLUTION
        if origin is not None:
            if scope is not None:
                scope.read_as = None
            span = scope.turn.span if scope is not None and scope.turn is not None else None
            self._record_read(rec, key, self.writer_of(rec, store), origin, version, state, span)

    def _record_read(
        self,
        rec: Recorder,
        key: TaskKey,
        writer: str,
        origin: str,
        version: Version,
        state: str,
        span: Span | None,
    ) -> None:
        rec.record(c.READ, span, task=key, writer=writer, origin=origin, version=version, state=state)

    # --- delete ---

    async def delete(self, wrapped: Method, store: Any, args: Any, kwargs: Any) -> Any:
        """Around a deletion, which ends the task's incarnation."""
        rec = recorder.active()
        if rec is None or _inside.get():
            return await wrapped(*args, **kwargs)
        token = _inside.set(True)
        try:
            result = await wrapped(*args, **kwargs)
        except Exception as error:
            if await _is_gone(store, args, kwargs):
                self._deleted(rec, store, args, kwargs, error_type=type(error).__qualname__)
            raise
        finally:
            _inside.reset(token)
        self._deleted(rec, store, args, kwargs)
        return result

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
            self._memory.deleted(key)
        except Exception as failure:
            internal_errors.report("after a deletion", failure)


def _which(args: Any, kwargs: Any) -> tuple[str, Any]:
    """Task id and context of a deletion."""
    return (
        args[0] if args else kwargs["task_id"],
        kwargs["context"] if "context" in kwargs else args[-1],
    )


async def _is_gone(store: Any, args: Any, kwargs: Any) -> bool:
    """Whether the task is not stored any more, though its deletion failed."""
    try:
        return await store.get(*_which(args, kwargs)) is None
    except Exception:
        return False  # it cannot be told


def _version(result: Any) -> Version:
    """The version that a save returned; None from a store that keeps none."""
    return version_of(result) if hasattr(result, "is_missing") else None


def _left_terminal(fact: Fact) -> bool:
    """Whether this accepted write alone shows that a terminal state was replaced by another.

    A cancel ignores the base version by contract, so its base says nothing of what it replaced.
    """
    replaced_is_base = fact.state != c.CANCELED or fact.version is None
    return replaced_is_base and fact.base_state in c.TERMINAL_STATES and fact.base_state != fact.state
