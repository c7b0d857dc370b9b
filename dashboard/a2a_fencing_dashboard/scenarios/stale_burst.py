"""A task is cancelled on B while A, which does not know, has an artifact and COMPLETED in its queue."""

from __future__ import annotations

import asyncio

from a2a.server.agent_execution import RequestContext
from a2a.server.events import EventQueue

from a2a_fencing import conventions as c
from a2a_fencing.testing import capture
from a2a_fencing_dashboard.scenarios import tally
from a2a_fencing_dashboard.scenarios.figures import Figures, Run
from a2a_fencing_dashboard.scenarios.replicas import (
    LIMIT_S,
    artifact,
    nothing,
    replicas,
    status,
    submitted,
    until,
)


def stale_burst(guard: bool | str = False) -> Run:
    """The scenario, with what the guard enforces."""

    async def play(dsn: str) -> Figures:
        return await _play(dsn, guard)

    return play


async def _play(dsn: str, guard: bool | str) -> Figures:
    working, cancelled = asyncio.Event(), asyncio.Event()
    task_id = ""

    async def work(context: RequestContext, queue: EventQueue) -> None:
        nonlocal task_id
        task_id = context.task_id or ""
        await queue.enqueue_event(submitted(context))
        await queue.enqueue_event(status(context, c.WORKING))
        working.set()
        await cancelled.wait()
        await queue.enqueue_event(artifact(context))
        await queue.enqueue_event(status(context, c.COMPLETED))

    with capture(guard=guard) as history:
        async with replicas(dsn, work, nothing) as (a, b):

            async def is_working() -> bool:
                return await b.stored(task_id) == c.WORKING

            request = asyncio.create_task(a.send())
            await asyncio.wait_for(working.wait(), LIMIT_S)
            await until(is_working)
            following = asyncio.Event()
            stream = asyncio.create_task(b.follow(task_id, following))
            await asyncio.wait_for(following.wait(), LIMIT_S)
            await b.cancel(task_id)
            cancelled.set()
            await asyncio.wait_for(request, LIMIT_S)
            streamed = await asyncio.wait_for(stream, LIMIT_S)
            await a.released(task_id)
            stored = await b.stored(task_id)
            facts = list(history.facts)
            await b.forget(task_id)
    return Figures(
        conflicts=tally.conflicts(facts),
        terminal_rejected=tally.terminal_rejected(facts),
        dropped=tally.dropped(facts),
        overwritten=tally.overwritten(facts),
        stored=stored,
        streamed=streamed,
    )
