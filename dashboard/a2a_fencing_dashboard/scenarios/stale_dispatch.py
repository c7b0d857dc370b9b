"""A charges a card over HTTP after a pause in which, perhaps, somebody else finished the task."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import httpx
from a2a.server.agent_execution import RequestContext
from a2a.server.events import EventQueue

import a2a_fencing
from a2a_fencing import conventions as c
from a2a_fencing.fencing import Fence, MemoryTokens
from a2a_fencing.testing import capture
from a2a_fencing_dashboard.scenarios import tally
from a2a_fencing_dashboard.scenarios.figures import Figures, Run
from a2a_fencing_dashboard.scenarios.payment import PaymentService, serving
from a2a_fencing_dashboard.scenarios.replicas import (
    LIMIT_S,
    Replica,
    nothing,
    replicas,
    status,
    submitted,
    until,
)

Meanwhile = Callable[[Replica, str], Awaitable[None]]


def stale_dispatch(*, finished_meanwhile: bool, fenced: bool) -> Run:
    """The scenario.

    Args:
        finished_meanwhile: Whether B records FAILED while A pauses before its dispatch.
        fenced: Whether the payment service looks at the fencing token.
    """

    async def play(dsn: str) -> Figures:
        fence = Fence(MemoryTokens(), name="payments") if fenced else None
        with serving(PaymentService(fence)) as payments, capture() as history:

            async def meanwhile(b: Replica, task_id: str) -> None:
                if not finished_meanwhile:
                    return
                token = await b.finish(task_id, c.FAILED)
                if fence is not None:
                    await fence.advance_async(token)

            stored, streamed = await _play(dsn, payments, meanwhile)
            facts = list(history.facts)
        return Figures(
            attempts=payments.attempts,
            accepted=payments.charges,
            conflicts=tally.conflicts(facts),
            stored=stored,
            streamed=streamed,
        )

    return play


async def _play(dsn: str, payments: PaymentService, meanwhile: Meanwhile) -> tuple[str | None, str]:
    """Returns the stored state and the last one that B's stream told."""
    paused, go_on = asyncio.Event(), asyncio.Event()
    task_id = ""

    async def work(context: RequestContext, queue: EventQueue) -> None:
        nonlocal task_id
        task_id = context.task_id or ""
        await queue.enqueue_event(submitted(context))
        await queue.enqueue_event(status(context, c.WORKING))
        paused.set()
        await go_on.wait()
        async with a2a_fencing.dispatch("charge-card", key="order-17") as dispatch:
            async with httpx.AsyncClient(trust_env=False) as http:
                response = await http.post(payments.url, headers=dispatch.headers)
            if response.is_success:
                dispatch.accepted()
            else:
                dispatch.rejected()
        await queue.enqueue_event(status(context, c.COMPLETED))

    async with replicas(dsn, work, nothing) as (a, b):

        async def is_working() -> bool:
            return await b.stored(task_id) == c.WORKING

        request = asyncio.create_task(a.send())
        await asyncio.wait_for(paused.wait(), LIMIT_S)
        await until(is_working)
        following = asyncio.Event()
        stream = asyncio.create_task(b.follow(task_id, following))
        await asyncio.wait_for(following.wait(), LIMIT_S)
        await meanwhile(b, task_id)
        go_on.set()
        await asyncio.wait_for(request, LIMIT_S)
        streamed = await asyncio.wait_for(stream, LIMIT_S)
        await a.released(task_id)
        stored = await b.stored(task_id)
        await b.forget(task_id)
    return stored, streamed
