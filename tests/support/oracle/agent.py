"""An agent that does what the message says, and all that agents ought not to do."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Final

from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.events.event_queue import Event
from a2a.server.tasks import TaskUpdater

from a2a_fencing import conventions as c
from support.cluster import artifact, status, submitted

RELAPSE: Final = "RELAPSE"
"""Completes, and then works on."""

RAISE: Final = "RAISE"
"""Ends with an exception."""

_ENDS: Final = {c.COMPLETED: 10, c.FAILED: 2, c.REJECTED: 1, c.INPUT_REQUIRED: 3, RELAPSE: 1, RAISE: 1}


@dataclass(frozen=True, slots=True)
class Script:
    """What one execution does.

    Attributes:
        steps: Status updates before the answer.
        pause_s: Seconds of work for each.
        burst: Artifacts that are queued at once, together with the end.
        end: The state it ends in, `RELAPSE` or `RAISE`.
        deaf: Whether it goes on when it is cancelled.
    """

    steps: int
    pause_s: float
    burst: int
    end: str
    deaf: bool

    @classmethod
    def drawn(cls, choice: random.Random, steps: tuple[int, int], longest_s: float) -> Script:
        """A script by chance: of so many steps, each with at most `longest_s` seconds of work."""
        return cls(
            steps=choice.randint(*steps),
            pause_s=choice.uniform(0.0, longest_s),
            burst=choice.randint(0, 3),
            end=choice.choices(list(_ENDS), list(_ENDS.values()))[0],
            deaf=choice.random() < 0.3,
        )

    @property
    def text(self) -> str:
        """The script as a message."""
        return json.dumps(asdict(self))

    @classmethod
    def read(cls, text: str) -> Script:
        """The script in a message."""
        return cls(**json.loads(text))


class Unruly(AgentExecutor):
    """Follows the script in each message."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        script = Script.read(context.get_user_input())
        if context.current_task is None:
            await event_queue.enqueue_event(submitted(context))
        for _ in range(script.steps):
            await _said(event_queue, status(context, c.WORKING), script)
            await _worked(script)
        for event in _answer(context, script):
            await _said(event_queue, event, script)
        if script.end == RAISE:
            raise RuntimeError("as the script says")

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Ends the task itself, or leaves that to the SDK; which, depends on the task."""
        task_id = context.task_id or ""
        if int(task_id[-1], 16) % 2:
            await TaskUpdater(event_queue, task_id, context.context_id or "").cancel()


def _answer(context: RequestContext, script: Script) -> Iterator[Event]:
    for number in range(script.burst):
        yield artifact(context, f"part {number}")
    if script.end == RELAPSE:
        yield status(context, c.COMPLETED)
        yield status(context, c.WORKING)
    elif script.end != RAISE:
        yield status(context, script.end)


async def _said(queue: EventQueue, event: Event, script: Script) -> None:
    try:
        await queue.enqueue_event(event)
    except asyncio.CancelledError:
        if not script.deaf:
            raise


async def _worked(script: Script) -> None:
    try:
        await asyncio.sleep(script.pause_s)
    except asyncio.CancelledError:
        if not script.deaf:
            raise
