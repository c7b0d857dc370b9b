"""The resource accepts, and the replica is killed before it can save; a sweeper records FAILED.

The replica is a process of its own, killed with SIGKILL between the charge and its answer.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from multiprocessing.context import SpawnProcess
from typing import Final

import httpx
from a2a.server.agent_execution import RequestContext
from a2a.server.events import EventQueue
from a2a.utils.errors import UnsupportedOperationError

import a2a_fencing
from a2a_fencing import conventions as c
from a2a_fencing.testing import capture
from a2a_fencing_dashboard.processes import Supervisor
from a2a_fencing_dashboard.scenarios import tally
from a2a_fencing_dashboard.scenarios.evidence import Evidence, receiving
from a2a_fencing_dashboard.scenarios.figures import Figures
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

_NAME: Final = "killed-replica"


async def accepted_then_killed(dsn: str) -> Figures:
    """Plays the scenario on the database of this DSN.

    Raises:
        TimeoutError: The replica did not charge the card in time.
    """
    charged, killed = threading.Event(), threading.Event()

    def hold_the_answer() -> None:
        charged.set()
        killed.wait(LIMIT_S)

    payments = PaymentService(charged=hold_the_answer)
    with receiving() as evidence, serving(payments), Supervisor() as supervisor:
        child = supervisor.start(
            _NAME, _replica, dsn=dsn, payments_url=payments.url, endpoint=evidence.url
        )
        try:
            return await _play(dsn, child, payments, evidence, charged)
        finally:
            child.kill()
            killed.set()
            child.join()


async def _play(
    dsn: str,
    child: SpawnProcess,
    payments: PaymentService,
    evidence: Evidence,
    charged: threading.Event,
) -> Figures:
    if not await asyncio.to_thread(charged.wait, LIMIT_S):
        raise TimeoutError(f"{_NAME} did not charge the card within {LIMIT_S:g} s")
    on_record = list(evidence.facts)
    attempt = next(fact for fact in on_record if fact.kind == c.DISPATCH)
    assert attempt.task is not None
    task_id = attempt.task.task_id
    with capture() as history:
        async with replicas(dsn, nothing) as (b,):
            following = asyncio.Event()
            stream = asyncio.create_task(b.follow(task_id, following))
            await asyncio.wait_for(following.wait(), LIMIT_S)
            child.kill()
            await asyncio.to_thread(child.join)
            await b.finish(task_id, c.FAILED)
            streamed = await asyncio.wait_for(stream, LIMIT_S)
            await _nobody_takes_it_up_again(b, task_id)
            stored = await b.stored(task_id)
            facts = [*evidence.facts, *history.facts]
            await b.forget(task_id)
    return Figures(
        attempts=payments.attempts,
        accepted=payments.charges,
        conflicts=tally.conflicts(facts),
        evidence=tally.evidence(facts),
        stored=stored,
        streamed=streamed,
    )


async def _nobody_takes_it_up_again(b: Replica, task_id: str) -> None:
    """A client asks for more, which must not start another execution that would charge again."""
    try:
        await b.send(task_id=task_id)
    except UnsupportedOperationError:
        return
    raise AssertionError("a finished task was taken up again")


# --- what runs in the process that is killed ---


def _replica(dsn: str, payments_url: str, endpoint: str) -> None:
    logging.disable()
    a2a_fencing.instrument(endpoint=endpoint)
    asyncio.run(_charge(dsn, payments_url))


async def _charge(dsn: str, payments_url: str) -> None:
    async def work(context: RequestContext, queue: EventQueue) -> None:
        await queue.enqueue_event(submitted(context))
        await queue.enqueue_event(status(context, c.WORKING))

        async def is_working() -> bool:
            return await a.stored(context.task_id or "") == c.WORKING

        await until(is_working)
        async with a2a_fencing.dispatch("charge-card", key="order-17", durable=True) as dispatch:
            async with httpx.AsyncClient(trust_env=False, timeout=LIMIT_S) as http:
                response = await http.post(payments_url, headers=dispatch.headers)
            if response.is_success:
                dispatch.accepted()
            else:
                dispatch.rejected()
        await queue.enqueue_event(status(context, c.COMPLETED))

    async with replicas(dsn, work) as (a,):
        await a.send()
