"""One replica of a real A2A server as a process: told what to do by lines on stdin, a line each.

Its agent does nothing of its own accord: events are put into its mouth. Its store can be held before a
save, so that a rival is first, and can lose the answer to a commit.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from typing import Any

from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.cluster import DatabaseTaskEventStream, VersionedDatabaseTaskStore
from a2a.server.context import ServerCallContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandlerV2
from a2a.types.a2a_pb2 import CancelTaskRequest, Task
from sqlalchemy.exc import OperationalError
from sqlalchemy.ext.asyncio import create_async_engine

import a2a_fencing
from a2a_fencing.hooks.tasks import event_state, state_of
from support.cluster import artifact, card, message, status, submitted, until

CALL = ServerCallContext()


class Agent(AgentExecutor):
    """Emits what it is given, a batch at a time, until it is given nothing."""

    def __init__(self) -> None:
        self.batches: asyncio.Queue[list[str]] = asyncio.Queue()

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        if context.current_task is None:
            await event_queue.enqueue_event(submitted(context))
        while batch := await self.batches.get():
            for name in batch:
                event = artifact(context) if name == "artifact" else status(context, name)
                await event_queue.enqueue_event(event)

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Leaves cancelling to the SDK."""


class Store(VersionedDatabaseTaskStore):
    """Waits before a save while it is held; may lose the answer to its next commit."""

    holding = False
    lose_answer = False

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.at_the_gate = asyncio.Event()
        self.passes = asyncio.Semaphore(0)

    async def save(self, *args: Any, **options: Any) -> Any:
        if self.holding:
            self.at_the_gate.set()
            await self.passes.acquire()
        return await super().save(*args, **options)

    async def _save_once(self, *args: Any, **options: Any) -> Any:
        version = await super()._save_once(*args, **options)
        if self.lose_answer:
            self.lose_answer = False
            raise OperationalError("COMMIT", {}, Exception("server closed the connection"))
        return version


class Replica:
    """What can be told to a replica: each public method is a command."""

    def __init__(self, dsn: str) -> None:
        self._engine = create_async_engine(dsn, connect_args={"timeout": 30})
        self._store = Store(self._engine, retry_delay_s=0)
        self._stream = DatabaseTaskEventStream(self._engine, poll_interval_s=0.02)
        self._agent = Agent()
        self._handler = DefaultRequestHandlerV2(
            self._agent, self._store, card(), event_stream=self._stream
        )
        self._streams: list[asyncio.Task[None]] = []

    async def open(self) -> None:
        """Makes the SDK's tables where they are missing."""
        await self._store.initialize()
        await self._stream.initialize()

    async def send(self, task_id: str = "", context_id: str = "") -> dict[str, str]:
        """Sends a message and follows its stream; answers with the ids of the task."""
        about = {"task_id": task_id, "context_id": context_id} if task_id else {}
        known: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        async def follow() -> None:
            async for event in self._handler.on_message_send_stream(message(**about), CALL):
                if not known.done():
                    known.set_result(event)

        self._streams.append(asyncio.create_task(follow()))
        if task_id:
            return about
        task = await known
        return {"task_id": task.id, "context_id": task.context_id}

    async def emit(self, *names: str) -> None:
        """Has the agent emit events: names of states, or ``artifact``."""
        await self._agent.batches.put(list(names))

    async def end(self) -> None:
        """Has the agent return."""
        await self._agent.batches.put([])

    async def cancel(self, task_id: str) -> str:
        """Cancels a task, as a client that reached this replica does; answers with its state."""
        answer = await self._handler.on_cancel_task(CancelTaskRequest(id=task_id), CALL)
        return event_state(answer) or ""

    async def touch(self, task_id: str) -> None:
        """Writes the stored task again, as a progress report from elsewhere does."""
        found = await self._store.get(task_id, CALL)
        task = Task()
        task.CopyFrom(found.task)
        await self._store.save(
            task, event=None, prev=found.task, prev_version=found.version, context=CALL
        )

    async def hold(self) -> None:
        """Holds saves from now on."""
        self._store.holding = True

    async def held(self) -> None:
        """Waits until a save is held."""
        await self._store.at_the_gate.wait()
        self._store.at_the_gate.clear()

    async def let_pass(self, last: bool = False) -> None:
        """Lets the save go on that is held; with `last`, all that follow too."""
        self._store.holding = not last
        self._store.passes.release()

    async def lose_answer(self) -> None:
        """Has the next commit succeed, and its answer get lost."""
        self._store.lose_answer = True

    async def wait_for(self, task_id: str, version: int) -> str:
        """Waits until that version is stored; answers with its state."""

        async def stored() -> bool:
            found = await self._store.get(task_id, CALL)
            return found is not None and int(found.version._value) >= version

        await until(stored)
        return str(state_of((await self._store.get(task_id, CALL)).task))

    async def released(self, task_id: str) -> None:
        """Waits until the SDK has put the task away here, and its streams have ended."""

        async def gone() -> bool:
            return await self._handler._active_task_registry.get(task_id) is None

        await until(gone)
        await asyncio.gather(*self._streams, return_exceptions=True)

    async def close(self) -> None:
        """Ends tasks and connections."""
        await self._handler.aclose()
        await self._engine.dispose()


async def serve(replica: Replica) -> None:
    """Does what the lines on stdin say until they end."""
    await replica.open()
    print(json.dumps("ready"), flush=True)
    while line := await asyncio.to_thread(sys.stdin.readline):
        name, arguments, options = json.loads(line)
        answer = await asyncio.wait_for(getattr(replica, name)(*arguments, **options), 30)
        print(json.dumps(answer), flush=True)
    await replica.close()


def main() -> None:
    """Runs one replica; see ``--help``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dsn", required=True)
    parser.add_argument("--endpoint", required=True)
    parser.add_argument("--audit", action="store_true")
    parser.add_argument("--guard", action="store_true")
    options = parser.parse_args()
    # One heartbeat at the start, one at the end.
    a2a_fencing.instrument(
        endpoint=options.endpoint, audit=options.audit, guard=options.guard, heartbeat_interval=3600
    )
    asyncio.run(serve(Replica(options.dsn)))
    a2a_fencing.uninstrument()


if __name__ == "__main__":
    main()
