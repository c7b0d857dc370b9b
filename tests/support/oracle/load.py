"""Clients that send a cluster of replicas whatever clients send, mostly to the wrong one."""

from __future__ import annotations

import asyncio
import random
from collections import Counter, deque
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import httpx
from a2a.client import Client, ClientConfig, create_client
from a2a.types import (
    CancelTaskRequest,
    GetTaskRequest,
    Message,
    Part,
    Role,
    SendMessageRequest,
    SubscribeToTaskRequest,
    TaskState,
)
from a2a.utils.errors import A2AError

from a2a_fencing_dashboard.demo.load import news
from support.oracle.agent import Script
from support.oracle.replica import CREATE, DELETE

_PATIENCE_S: Final = 8.0
_RECENT: Final = 60
_PAUSE_AFTER_ERROR_S: Final = 0.1
_ONE_TASK: Final = TaskState.TASK_STATE_UNSPECIFIED


@dataclass(frozen=True, slots=True, kw_only=True)
class Mix:
    """What the clients do with their tasks: the share of tasks that each thing happens to.

    Attributes:
        cancel, again: A cancel, and another one.
        follow_up, subscribe, get, delete: What else happens while the task runs.
        reborn: Deletion afterwards, mostly with another task under the same id.
        steps: Fewest and most steps of an agent's work.
        longest_s: Most seconds that it works for one step.
        patience: After how many status updates things happen; one of these.
    """

    cancel: float
    again: float
    follow_up: float
    subscribe: float
    get: float
    delete: float
    reborn: float
    steps: tuple[int, int]
    longest_s: float
    patience: Sequence[int]


EVERYTHING: Final = Mix(
    cancel=0.45,
    again=0.1,
    follow_up=0.2,
    subscribe=0.1,
    get=0.2,
    delete=0.04,
    reborn=0.08,
    steps=(1, 5),
    longest_s=0.2,
    patience=(1, 2, 3),
)

CANCELS: Final = Mix(
    cancel=1.0,
    again=0.1,
    follow_up=0.03,
    subscribe=0.02,
    get=0.0,
    delete=0.01,
    reborn=0.01,
    steps=(2, 3),
    longest_s=0.3,
    patience=(1,),
)
"""For as many cancelled tasks as the machine can bear."""


@dataclass(slots=True)
class Tally:
    """What the clients did.

    Attributes:
        did: How often what was tried.
        failed: Requests that failed, by what went wrong.
        recent: Ids of tasks that were begun last.
        cancelled: Ids of tasks of which a client was told that they are cancelled.
    """

    did: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    recent: deque[str] = field(default_factory=lambda: deque(maxlen=_RECENT))
    cancelled: set[str] = field(default_factory=set)


async def run_load(
    urls: Sequence[str], tally: Tally, *, mix: Mix, clients: int, seed: int, stop: asyncio.Event
) -> None:
    """Sends from several clients at once until `stop` is set; what they began is then finished."""
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(timeout=60, limits=limits, trust_env=False) as http:
        replicas = [await create_client(url, ClientConfig(httpx_client=http)) for url in urls]
        people = (
            _Person(replicas, urls, http, tally, mix, random.Random(f"{seed}/client {n}"))
            for n in range(clients)
        )
        await asyncio.gather(*(person.work_until(stop) for person in people))


class _Person:
    """Begins one task after the other and interferes with each."""

    def __init__(
        self,
        replicas: Sequence[Client],
        urls: Sequence[str],
        http: httpx.AsyncClient,
        tally: Tally,
        mix: Mix,
        choice: random.Random,
    ) -> None:
        self._replicas = replicas
        self._urls = urls
        self._http = http
        self._tally = tally
        self._mix = mix
        self._choice = choice

    async def work_until(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            if not await self._tried("task", self._one_task()):
                await asyncio.sleep(_PAUSE_AFTER_ERROR_S)

    async def _one_task(self) -> None:
        choice = self._choice
        meddling: list[asyncio.Task[bool]] = []
        patience = choice.choice(self._mix.patience)
        task_id, context_id, state, updates = "", "", _ONE_TASK, 0
        try:
            async for response in self._replica().send_message(self._message()):
                if not task_id and response.HasField("task"):
                    context_id = response.task.context_id
                    self._tally.recent.append(response.task.id)
                task_id, state = news(response, task_id, state)
                updates += response.HasField("status_update")
                if updates == patience and not meddling:
                    meddling = [asyncio.create_task(one) for one in self._meddle(task_id, context_id)]
            if state == TaskState.TASK_STATE_INPUT_REQUIRED and choice.random() < 0.7:
                await self._tried("follow-up", self._send(task_id, context_id))
            if choice.random() < self._mix.reborn:
                await self._reincarnate(task_id, context_id)
        finally:
            await asyncio.gather(*meddling)

    def _meddle(self, task_id: str, context_id: str) -> list[Coroutine[Any, Any, bool]]:
        """Most tasks are interfered with while they run, some from several sides."""
        drawn, mix = self._choice.random, self._mix
        actions: list[Coroutine[Any, Any, bool]] = []
        if drawn() < mix.cancel:
            actions.append(self._tried("cancel", self._cancel(task_id)))
        if drawn() < mix.again:
            actions.append(self._tried("cancel", self._cancel(task_id)))
        if drawn() < mix.follow_up:
            actions.append(self._tried("follow-up", self._send(task_id, context_id)))
        if drawn() < mix.subscribe:
            actions.append(self._tried("subscribe", self._subscribe(task_id)))
        if drawn() < mix.get:
            actions.append(self._tried("get", self._get(task_id)))
        if drawn() < mix.delete:
            actions.append(self._tried("delete", self._housekeep(DELETE, task_id, context_id)))
        return actions

    async def _reincarnate(self, task_id: str, context_id: str) -> None:
        """Deletes a task and gives its id to another one."""
        await self._tried("delete", self._housekeep(DELETE, task_id, context_id))
        if self._choice.random() < 0.7:
            await self._tried("re-creation", self._housekeep(CREATE, task_id, context_id))
            await self._tried("follow-up", self._send(task_id, context_id))

    # --- one request each, to any replica ---

    async def _cancel(self, task_id: str) -> None:
        await asyncio.sleep(self._choice.choice((0.0, 0.0, 0.02, 0.1)))
        task = await self._replica().cancel_task(CancelTaskRequest(id=task_id))
        if task.status.state == TaskState.TASK_STATE_CANCELED:
            self._tally.cancelled.add(task_id)

    async def _send(self, task_id: str, context_id: str) -> None:
        async for _ in self._replica().send_message(self._message(task_id, context_id)):
            pass

    async def _subscribe(self, task_id: str) -> None:
        async for _ in self._replica().subscribe(SubscribeToTaskRequest(id=task_id)):
            pass

    async def _get(self, task_id: str) -> None:
        await self._replica().get_task(GetTaskRequest(id=task_id))

    async def _housekeep(self, action: str, task_id: str, context_id: str) -> None:
        url = f"{self._choice.choice(self._urls)}/housekeeping/{action}/{task_id}"
        response = await self._http.post(url, params={"context": context_id})
        response.raise_for_status()

    def _replica(self) -> Client:
        return self._choice.choice(self._replicas)

    def _message(self, task_id: str = "", context_id: str = "") -> SendMessageRequest:
        message = Message(
            message_id=f"{self._choice.getrandbits(64):016x}",
            role=Role.ROLE_USER,
            parts=[Part(text=self._script())],
            task_id=task_id,
            context_id=context_id,
        )
        return SendMessageRequest(message=message)

    def _script(self) -> str:
        return Script.drawn(self._choice, self._mix.steps, self._mix.longest_s).text

    async def _tried(self, what: str, request: Coroutine[Any, Any, None]) -> bool:
        """Whether a request came to its end; the cluster is disturbed, so that many do not."""
        self._tally.did[what] += 1
        try:
            await asyncio.wait_for(request, _PATIENCE_S)
        except (A2AError, httpx.HTTPError, asyncio.TimeoutError) as error:
            self._tally.failed[f"{what}: {type(error).__name__}"] += 1
            return False
        return True
