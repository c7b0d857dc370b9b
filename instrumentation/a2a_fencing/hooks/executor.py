"""Executions: an agent's ``execute`` from start to end, on which replica and for which request."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.trace import Status, StatusCode

from a2a_fencing import conventions as c
from a2a_fencing import internal_errors, recorder
from a2a_fencing.facts import Version
from a2a_fencing.hooks import scope as scopes
from a2a_fencing.hooks.leaving import detach
from a2a_fencing.hooks.memory import TaskMemory
from a2a_fencing.hooks.patches import Patches
from a2a_fencing.hooks.scope import Turn
from a2a_fencing.hooks.sdk import AgentExecutor
from a2a_fencing.hooks.stores import is_versioned
from a2a_fencing.hooks.tasks import state_of, version_of
from a2a_fencing.recorder import Recorder
from a2a_fencing.spans import ambient

Method = Callable[..., Awaitable[Any]]


class ExecutorHooks:
    """What happens around every override of ``AgentExecutor.execute``.

    Args:
        memory: Says at which version the executor started.
        on_start: Called before each execution.

    Attributes:
        running: Executions running in this process now.
    """

    def __init__(self, memory: TaskMemory, on_start: Callable[[], None]) -> None:
        self._memory = memory
        self._on_start = on_start
        self.running = 0

    def install(self, patches: Patches) -> None:
        """Hooks executors that exist and that come later."""
        patches.wrap_overrides(AgentExecutor, "execute", self.execute)

    def adopt(self, patches: Patches, executor: Any) -> None:
        """Hooks the class of an executor that derives from no SDK class."""
        patches.adopt(type(executor), "execute", self.execute)

    async def execute(self, wrapped: Method, executor: Any, args: Any, kwargs: Any) -> Any:
        """Around an execution; one that calls ``super().execute`` is still one."""
        rec = recorder.active()
        request = args[0] if args else kwargs.get("context")
        if rec is None or request is None:
            return await wrapped(*args, **kwargs)
        turn = scopes.turn_of(request)
        if turn.execution_id is not None:
            return await wrapped(*args, **kwargs)
        try:
            self._on_start()
            token = self._start(rec, turn, request)
        except Exception as error:
            internal_errors.report("start of an execution", error)
            return await wrapped(*args, **kwargs)
        self.running += 1
        phase, error_type = c.FINISHED, None
        try:
            return await wrapped(*args, **kwargs)
        except asyncio.CancelledError:
            phase = c.CANCELLED
            raise
        except BaseException as error:
            phase, error_type = c.RAISED, type(error).__qualname__
            raise
        finally:
            self.running -= 1
            scopes.ends(turn)
            detach(token)
            self._end(rec, turn, phase, error_type)

    def _start(self, rec: Recorder, turn: Turn, request: Any) -> Any:
        attributes = {
            "a2a.task.id": request.task_id or "",
            "gen_ai.conversation.id": request.context_id or "",
        }
        span = rec.tracer.start_span(c.SPAN_EXECUTE, attributes=attributes)
        task = request.current_task
        turn.task_id = request.task_id
        turn.state = state_of(task) if task is not None else None
        turn.version = version = self._version(turn)
        turn.token = _token(turn.store, version)
        turn.span = span
        turn.inside = trace.set_span_in_context(span)
        fact = rec.record(
            c.EXECUTION,
            span,
            phase=c.STARTED,
            task=turn.key,
            writer=turn.writer,
            context_id=request.context_id,
            version=version,
            state=turn.state,
            token=turn.token,
        )
        # The start's own id names the execution: no second id to make and to send.
        turn.execution_id = fact.id
        scopes.begins(turn)
        around = trace.set_span_in_context(ambient(span))
        return otel_context.attach(scopes.inside(turn, around))

    def _version(self, turn: Turn) -> Version:
        """The version of the task that the executor is given; None for a new one."""
        if turn.state is None:
            return None
        if turn.manager is not None:
            return version_of(getattr(turn.manager, "current_version", None))
        known = self._memory.latest(turn.key) if turn.key is not None else None
        return known.version if known is not None and known.state == turn.state else None

    def _end(self, rec: Recorder, turn: Turn, phase: str, error_type: str | None) -> None:
        try:
            span = turn.span
            rec.record(
                c.EXECUTION,
                span,
                phase=phase,
                task=turn.key,
                writer=turn.writer,
                execution_id=turn.execution_id,
                token=turn.token,
                error_type=error_type,
            )
            turn.span = None
            if span is not None:
                if error_type is not None:
                    span.set_status(Status(StatusCode.ERROR, error_type))
                span.end()
        except Exception as error:
            internal_errors.report("end of an execution", error)


def _token(store: Any, version: Version) -> int | None:
    """The fencing token of an execution that starts from this version of the stored task.

    One more than the version, so that the first execution of a task has 1. Whoever takes the right to
    act away does so by a write; everybody who started before that write has a lower token than the
    next execution. Two executions that start from one version tie; of those the store lets one write.
    """
    if not is_versioned(store) or isinstance(version, str):
        return None
    return (version or 0) + 1
