"""One real handler in memory, for tests of what an executor does."""

from __future__ import annotations

from typing import Any

from a2a.server.context import ServerCallContext
from a2a.server.request_handlers import DefaultRequestHandlerV2

from a2a_fencing.testing import InMemoryVersionedTaskStore
from support.cluster import ScriptedExecutor, Work, card, message, status, submitted

CALL = ServerCallContext()


class NoStream:
    """An event stream to nobody."""

    async def publish(self, task_id: str, event: Any) -> None:
        pass


async def run(work: Work, store: Any = None, **about: Any) -> Any:
    """Sends one message to an agent that does `work`; returns the answer."""
    handler = serving(work, store)
    try:
        return await handler.on_message_send(message(**about), CALL)
    finally:
        await handler.aclose()


def serving(work: Work, store: Any = None, **options: Any) -> DefaultRequestHandlerV2:
    """A handler of an agent that does `work`, on a versioned store in memory unless one is given."""
    return DefaultRequestHandlerV2(
        ScriptedExecutor(work),
        store if store is not None else InMemoryVersionedTaskStore(terminal_rule=False),
        card(),
        event_stream=NoStream(),
        **options,
    )


def between(step: Any) -> Work:
    """Work that does one step between SUBMITTED and COMPLETED."""

    async def work(context: Any, queue: Any) -> None:
        await queue.enqueue_event(submitted(context))
        await step(context)
        await queue.enqueue_event(status(context, "COMPLETED"))

    return work
