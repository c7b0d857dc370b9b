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
from a2a_fencing.hooks import scope as scopes
from a2a_fencing.hooks.memory import TaskMemory
from a2a_fencing.hooks.patches import Patches
from a2a_fencing.hooks.scope import Turn
from a2a_fencing.hooks.sdk import AgentExecutor
from a2a_fencing.hooks.tasks import state_of
from a2a_fencing.recorder import Recorder

Method = Callable[..., Awaitable[Any]]


class ExecutorHooks:
    """What happens around every override of ``AgentExecutor.execute``.

    Args:
        memory: Says at which version the executor started.

    Attributes:
        running: Executions running in this process now.
    """

    def __init__(self, memory: TaskMemory) -> None:
        self._memory = memory
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
            otel_context.detach(token)
            self._end(rec, turn, phase, error_type)

    def _start(self, rec: Recorder, turn: Turn, request: Any) -> Any:
        attributes = {
            "a2a.task.id": request.task_id or "",
            "gen_ai.conversation.id": request.context_id or "",
        }
        span = rec.tracer.start_span(c.SPAN_EXECUTE, attributes=attributes)
        task = request.current_task
        known = self._memory.latest(turn.key) if turn.key is not None else None
        state = state_of(task) if task is not None else None
        version = known.version if known is not None and known.state == state else None
        turn.span = span
        turn.inside = trace.set_span_in_context(span)
        turn.token = version if isinstance(version, int) else None
        fact = rec.record(
            c.EXECUTION,
            span,
            phase=c.STARTED,
            task=turn.key,
            writer=turn.writer,
            context_id=request.context_id,
            version=version,
            state=state,
            token=turn.token,
        )
        # The start's own id names the execution: no second id to make and to send.
        turn.execution_id = fact.id
        return otel_context.attach(turn.inside)

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
