"""Request handlers: which method told a client which state, and how each stream ended."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Any

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.trace import Span

from a2a_fencing import conventions as c
from a2a_fencing import internal_errors, recorder
from a2a_fencing.facts import TaskKey
from a2a_fencing.hooks import scope as scopes
from a2a_fencing.hooks.leaving import detach
from a2a_fencing.hooks.listing import Listed
from a2a_fencing.hooks.memory import TaskMemory
from a2a_fencing.hooks.patches import Patches
from a2a_fencing.hooks.scope import Scope
from a2a_fencing.hooks.sdk import DefaultRequestHandlerV2, LegacyRequestHandler
from a2a_fencing.hooks.store import StoreHooks
from a2a_fencing.hooks.streams import StreamWatch, watching
from a2a_fencing.hooks.tasks import event_kind, event_state
from a2a_fencing.recorder import Recorder

Method = Callable[..., Awaitable[Any]]
_ENDINGS = {
    **dict.fromkeys(c.TERMINAL_STATES, c.END_TERMINAL),
    **dict.fromkeys(c.INTERRUPTED_STATES, c.END_INTERRUPTED),
}


class HandlerHooks:
    """What happens around the request handlers' methods.

    Args:
        stores: Names tasks.
        memory: Says which version an answer tells of.
    """

    def __init__(self, stores: StoreHooks, memory: TaskMemory) -> None:
        self._stores = stores
        self._memory = memory
        self._listed = Listed()

    def install(self, patches: Patches) -> list[str]:
        """Hooks both of the SDK's handlers; returns the targets this SDK does not have."""
        missing = []
        for handler, name in (
            (DefaultRequestHandlerV2, "DefaultRequestHandlerV2"),
            (LegacyRequestHandler, "LegacyRequestHandler"),
        ):
            missing += patches.wrap_all(
                (handler, name, "on_message_send", self.send),
                (handler, name, "on_get_task", self.get),
                (handler, name, "on_list_tasks", self.list),
                (handler, name, "on_cancel_task", self.cancel),
                (handler, name, "on_message_send_stream", self.send_stream),
                (handler, name, "on_subscribe_to_task", self.subscribe),
            )
        return missing + patches.wrap_all(
            (DefaultRequestHandlerV2, "DefaultRequestHandlerV2", "_cancel_remote", self.cancel_remote)
        )

    # --- answers ---

    async def send(self, wrapped: Method, handler: Any, args: Any, kwargs: Any) -> Any:
        """Around SendMessage."""
        return await self._answered(c.SEND_MESSAGE, wrapped, handler, args, kwargs)

    async def get(self, wrapped: Method, handler: Any, args: Any, kwargs: Any) -> Any:
        """Around GetTask."""
        return await self._answered(c.GET_TASK, wrapped, handler, args, kwargs)

    async def list(self, wrapped: Method, handler: Any, args: Any, kwargs: Any) -> Any:
        """Around ListTasks; finished tasks are answers, others are on their way and say nothing."""
        page = await wrapped(*args, **kwargs)
        rec = recorder.active()
        if rec is not None:
            try:
                for task in page.tasks:
                    key = self._key(handler, args, kwargs, task.id)
                    if key is not None and self._listed.is_news(key, task):
                        self._told(rec, c.LIST_TASKS, handler, args, kwargs, task)
            except Exception as error:
                internal_errors.report("a list of tasks", error)
        return page

    async def cancel(self, wrapped: Method, handler: Any, args: Any, kwargs: Any) -> Any:
        """Around CancelTask, which has a span of its own: it is what races the executor."""
        rec = recorder.active()
        if rec is None:
            return await wrapped(*args, **kwargs)
        task_id = getattr(args[0] if args else kwargs.get("params"), "id", "")
        span = rec.tracer.start_span(c.SPAN_CANCEL, attributes={"a2a.task.id": task_id})
        token = otel_context.attach(trace.set_span_in_context(span))
        origin = c.DIRECT if handler_has_versions(handler) else c.FROM_CANCEL_LOCAL
        try:
            with scopes.entered(Scope(origin)):
                return await self._answered(c.CANCEL_TASK, wrapped, handler, args, kwargs, span)
        finally:
            detach(token)
            span.end()

    async def cancel_remote(self, wrapped: Method, handler: Any, args: Any, kwargs: Any) -> Any:
        """Around a cancel of a task that runs on another replica."""
        with scopes.entered(Scope(c.FROM_CANCEL_REMOTE)):
            return await wrapped(*args, **kwargs)

    async def _answered(
        self,
        method: str,
        wrapped: Method,
        handler: Any,
        args: Any,
        kwargs: Any,
        span: Span | None = None,
    ) -> Any:
        rec = recorder.active()
        if rec is None:
            return await wrapped(*args, **kwargs)
        try:
            result = await wrapped(*args, **kwargs)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            self._told_error(rec, method, handler, args, kwargs, error, span)
            raise
        self._told(rec, method, handler, args, kwargs, result, span)
        return result

    def _told(
        self,
        rec: Recorder,
        method: str,
        handler: Any,
        args: Any,
        kwargs: Any,
        event: Any,
        span: Span | None = None,
        **values: Any,
    ) -> None:
        """The client got `event`, a Task or a Message, or a stream whose last event it was."""
        try:
            kind, state = event_kind(event), event_state(event)
            task_id = event.id if kind == c.TASK_EVENT else getattr(event, "task_id", "")
            key = self._key(handler, args, kwargs, task_id)
            if key is None:
                return
            known = self._memory.latest(key)
            rec.record(
                c.ANSWER,
                span,
                task=key,
                writer=self._stores.writer_of(rec, handler.task_store),
                context_id=event.context_id or None,
                method=method,
                event_kind=kind,
                state=state,
                version=known.version if known is not None and known.state == state else None,
                **values,
            )
        except Exception as error:
            internal_errors.report("an answer", error)

    def _told_error(
        self,
        rec: Recorder,
        method: str,
        handler: Any,
        args: Any,
        kwargs: Any,
        error: BaseException,
        span: Span | None = None,
        **values: Any,
    ) -> None:
        try:
            key = self._key(handler, args, kwargs, "")
            if key is not None:
                rec.record(
                    c.ANSWER,
                    span,
                    task=key,
                    writer=self._stores.writer_of(rec, handler.task_store),
                    method=method,
                    error_type=type(error).__qualname__,
                    **values,
                )
        except Exception as failure:
            internal_errors.report("an error answer", failure)

    def _key(self, handler: Any, args: Any, kwargs: Any, task_id: str) -> TaskKey | None:
        """The task that a request is about, from the answer or else from the request."""
        params = args[0] if args else kwargs.get("params")
        context = kwargs["context"] if "context" in kwargs else args[-1]
        task_id = task_id or getattr(params, "id", "") or _message_task_id(params)
        return self._stores.key_of(handler.task_store, context, task_id) if task_id else None

    # --- streams ---

    def send_stream(self, wrapped: Any, handler: Any, args: Any, kwargs: Any) -> Any:
        """Around SendStreamingMessage."""
        return self._streamed(c.SEND_STREAMING_MESSAGE, wrapped, handler, args, kwargs)

    def subscribe(self, wrapped: Any, handler: Any, args: Any, kwargs: Any) -> Any:
        """Around SubscribeToTask."""
        return self._streamed(c.SUBSCRIBE_TO_TASK, wrapped, handler, args, kwargs)

    def _streamed(self, method: str, wrapped: Any, handler: Any, args: Any, kwargs: Any) -> Any:
        stream = wrapped(*args, **kwargs)
        rec = recorder.active()
        if rec is None:
            return stream
        return self._watched(rec, method, stream, handler, args, kwargs)

    async def _watched(
        self, rec: Recorder, method: str, stream: Any, handler: Any, args: Any, kwargs: Any
    ) -> AsyncGenerator[Any, None]:
        """Passes a stream on, event by event, and records how it ended.

        Context is set around each step and never across a ``yield``, which would leave it behind in
        whatever consumes the stream.
        """
        watch = StreamWatch()
        read_as = c.SUBSCRIBER_SNAPSHOT if method == c.SUBSCRIBE_TO_TASK else None
        scope = Scope(c.DIRECT, read_as=read_as)
        error: BaseException | None = None
        async with aclosing(stream):
            try:
                while True:
                    try:
                        with watching(watch), scopes.entered(scope):
                            event = await anext(stream)
                    except StopAsyncIteration:
                        return
                    watch.saw(event)
                    yield event
            except BaseException as raised:
                error = raised
                raise
            finally:
                self._stream_ended(rec, method, watch, error, handler, args, kwargs)

    def _stream_ended(
        self,
        rec: Recorder,
        method: str,
        watch: StreamWatch,
        error: BaseException | None,
        handler: Any,
        args: Any,
        kwargs: Any,
    ) -> None:
        client_left = isinstance(error, GeneratorExit | asyncio.CancelledError)
        if watch.last is None:
            if error is not None and not client_left:
                self._told_error(rec, method, handler, args, kwargs, error)  # refused, not cut
            return
        values: dict[str, Any] = {"ending": self._ending(watch, client_left)}
        if error is not None and not client_left:
            values["error_type"] = type(error).__qualname__
        self._told(rec, method, handler, args, kwargs, watch.last, **values)

    @staticmethod
    def _ending(watch: StreamWatch, client_left: bool) -> str:
        if watch.message:
            return c.END_MESSAGE
        ending = _ENDINGS.get(watch.state or "")
        if ending is not None:
            return ending
        if client_left:
            return c.END_CLOSED
        return c.END_EVICTED if watch.evicted else c.END_CUT


def handler_has_versions(handler: Any) -> bool:
    """Whether the handler itself tells local from remote cancels (the current one, not the legacy)."""
    return DefaultRequestHandlerV2 is not None and isinstance(handler, DefaultRequestHandlerV2)


def _message_task_id(params: Any) -> str:
    message = getattr(params, "message", None)
    return getattr(message, "task_id", "") or ""
