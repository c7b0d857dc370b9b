"""Plays three cases with the agent and the payment service of this folder, and prints a table."""

import asyncio
import logging
import tempfile
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import payments
import uvicorn
from a2a.helpers import new_text_message
from a2a.server.context import ServerCallContext
from a2a.types import Role, SendMessageRequest, Task, TaskState
from agent import Cashier, Replica

from a2a_fencing.fencing import TOKEN_HEADER, taken_over
from a2a_fencing.testing import capture

CALL = ServerCallContext()
CASES = {
    "nobody interferes": {"finished": False, "fenced": True},
    "FAILED elsewhere, no fence": {"finished": True, "fenced": False},
    "FAILED elsewhere, fenced": {"finished": True, "fenced": True},
}


async def until(condition) -> None:
    while not condition():  # noqa: ASYNC110 - what it waits for has no event
        await asyncio.sleep(0.01)


def is_working(history) -> bool:
    return any(fact.state == "WORKING" for fact in history.of("write"))


@asynccontextmanager
async def serving(app):
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="error"))
    running = asyncio.create_task(server.serve())
    await until(lambda: server.started)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        await running


async def finish_as_a_sweeper(replica: Replica, task_id: str, url: str, fenced: bool) -> None:
    """Records FAILED through another replica and tells the payment service who lost the right."""
    found = await replica.store.get(task_id, CALL)
    failed = Task()
    failed.CopyFrom(found.task)
    failed.status.state = TaskState.TASK_STATE_FAILED
    version = await replica.store.save(
        failed, event=None, prev=found.task, prev_version=found.version, context=CALL
    )
    if fenced:
        token = taken_over(replica.store, CALL, task_id, version)
        async with httpx.AsyncClient() as http:
            answer = await http.post(f"{url}/advance", headers={TOKEN_HEADER: token.to_header()})
            answer.raise_for_status()


async def play(folder: Path, finished: bool, fenced: bool) -> tuple[int, int, int, str]:
    database = f"sqlite+aiosqlite:///{folder}/tasks.sqlite"
    thinking, go_on = asyncio.Event(), asyncio.Event()

    async def think() -> None:
        thinking.set()
        await go_on.wait()

    service = payments.application(f"sqlite+aiosqlite:///{folder}/payments.sqlite", fenced=fenced)
    with capture() as history:
        async with serving(service) as url:
            a = Replica(database, Cashier(f"{url}/charges", think), "http://a.invalid/")
            b = Replica(database, Cashier(f"{url}/charges"), "http://b.invalid/")
            await a.store.initialize()
            message = new_text_message("order-17", role=Role.ROLE_USER)
            request = asyncio.create_task(
                a.handler.on_message_send(SendMessageRequest(message=message), CALL)
            )
            await thinking.wait()
            await until(lambda: is_working(history))
            task_id = history.of("write")[0].task.task_id
            if finished:
                await finish_as_a_sweeper(b, task_id, url, fenced)
            go_on.set()
            await request
            async with httpx.AsyncClient() as http:
                done = (await http.get(f"{url}/charges")).json()
            stored = (await b.store.get(task_id, CALL)).task.status.state
            await a.close()
            await b.close()
    conflicts = sum(fact.outcome == "conflict" for fact in history.of("write"))
    return (
        done["requests"],
        len(done["charges"]),
        conflicts,
        TaskState.Name(stored).removeprefix("TASK_STATE_"),
    )


def main() -> None:
    logging.disable(logging.WARNING)  # the table tells
    print(f"{'case':<28}{'attempts':>9}{'charges':>9}{'refused writes':>16}  stored")
    for name, case in CASES.items():
        with tempfile.TemporaryDirectory() as folder:
            attempts, charges, conflicts, stored = asyncio.run(play(Path(folder), **case))
        print(f"{name:<28}{attempts:>9}{charges:>9}{conflicts:>16}  {stored}")


if __name__ == "__main__":
    main()
