"""The demo's clients: they send messages to the replicas and change their minds about some.

They speak the protocol over HTTP through the SDK's own client and know nothing of what will come of it.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Final

import httpx
from a2a.client import Client, ClientConfig, create_client
from a2a.helpers import new_text_message
from a2a.types import CancelTaskRequest, Role, SendMessageRequest, StreamResponse, TaskState
from a2a.utils.errors import A2AError, TaskNotCancelableError

_CANCELLED_SHARE: Final = 0.3
_TIMEOUT_S: Final = 30.0
_PAUSE_AFTER_ERROR_S: Final = 0.2
_UPDATES_BEFORE_CANCEL: Final = (1, 2, 3)


@dataclass(slots=True)
class Tally:
    """What the clients saw.

    Attributes:
        tasks: Tasks that a replica accepted.
        cancels: Cancels that were answered with success.
        refused_cancels: Cancels that came too late.
        errors: Requests that failed, by what went wrong.
        told: States that clients were told of each task as its last (by a stream's end or a cancel's
            answer), by task id.
        seconds: How long the clients worked.
    """

    tasks: int = 0
    cancels: int = 0
    refused_cancels: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    told: dict[str, set[str]] = field(default_factory=dict)
    seconds: float = 0.0

    def was_told(self, task_id: str, state: TaskState) -> None:
        """Notes a state that a client believes to be the task's last."""
        name = TaskState.Name(state).removeprefix("TASK_STATE_")
        self.told.setdefault(task_id, set()).add(name)


async def run_load(
    urls: Sequence[str], *, concurrency: int, seconds: float | None, seed: int, stop: asyncio.Event
) -> Tally:
    """Sends messages from several clients at once, each one task after the other.

    Args:
        urls: Base URLs of the replicas.
        concurrency: How many clients.
        seconds: For how long new tasks are begun; None until `stop` is set.
        seed: Of the choices: which replica, which tasks are cancelled and when.
        stop: Ends the load early; tasks under way are still finished.
    """
    tally = Tally()
    async with AsyncExitStack() as stack:
        limits = httpx.Limits(max_connections=None)
        http = await stack.enter_async_context(httpx.AsyncClient(timeout=_TIMEOUT_S, limits=limits))
        config = ClientConfig(httpx_client=http)
        clients = [await create_client(url, config) for url in urls]
        began = time.monotonic()
        timer = asyncio.get_running_loop().call_later(seconds, stop.set) if seconds is not None else None
        try:
            people = (_Person(clients, tally, random.Random(f"{seed}/{n}")) for n in range(concurrency))
            await asyncio.gather(*(person.work_until(stop) for person in people))
        finally:
            tally.seconds = time.monotonic() - began
            if timer is not None:
                timer.cancel()
    return tally


class _Person:
    """Sends one message after the other and cancels some of the tasks through another replica."""

    def __init__(self, clients: Sequence[Client], tally: Tally, choice: random.Random) -> None:
        self._clients = clients
        self._tally = tally
        self._choice = choice

    async def work_until(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            try:
                await self._one_task()
            except A2AError as error:
                self._tally.errors[type(error).__name__] += 1
                await asyncio.sleep(_PAUSE_AFTER_ERROR_S)

    async def _one_task(self) -> None:
        client = self._choice.choice(self._clients)
        others = [other for other in self._clients if other is not client] or [client]
        changes_mind = self._choice.random() < _CANCELLED_SHARE
        patience = self._choice.choice(_UPDATES_BEFORE_CANCEL)
        updates = 0
        task_id, state = "", TaskState.TASK_STATE_UNSPECIFIED
        cancelling: asyncio.Task[None] | None = None
        message = new_text_message("Write a report.", role=Role.ROLE_USER)
        async for response in client.send_message(SendMessageRequest(message=message)):
            task_id, state = news(response, task_id, state)
            updates += response.HasField("status_update")
            if changes_mind and cancelling is None and updates == patience:
                cancelling = asyncio.create_task(self._cancel(self._choice.choice(others), task_id))
        self._tally.tasks += 1
        self._tally.was_told(task_id, state)
        if cancelling is not None:
            await cancelling

    async def _cancel(self, client: Client, task_id: str) -> None:
        try:
            task = await client.cancel_task(CancelTaskRequest(id=task_id))
        except TaskNotCancelableError:
            self._tally.refused_cancels += 1
        else:
            self._tally.cancels += 1
            self._tally.was_told(task_id, task.status.state)


def news(response: StreamResponse, task_id: str, state: TaskState) -> tuple[str, TaskState]:
    """The task's id and state after one more event of its stream."""
    if response.HasField("task"):
        return response.task.id, response.task.status.state
    if response.HasField("status_update"):
        return response.status_update.task_id, response.status_update.status.state
    return task_id, state
