"""A small A2A server whose replicas share one task store. Copy it and put your agent in."""

import argparse
import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn
from a2a.helpers import new_task_from_user_message, new_text_part
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.cluster import DatabaseTaskEventStream, VersionedDatabaseTaskStore
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill
from sqlalchemy.ext.asyncio import create_async_engine
from starlette.applications import Starlette

import a2a_fencing

a2a_fencing.instrument()  # with its opposite below; everything else is a plain A2A server


class Countdown(AgentExecutor):
    """Counts down once a second, which leaves time to cancel."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        task = context.current_task
        if task is None:
            task = new_task_from_user_message(context.message)
            await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        for number in range(5, 0, -1):
            await updater.start_work(updater.new_agent_message([new_text_part(f"{number} ...")]))
            await asyncio.sleep(1)
        await updater.add_artifact([new_text_part("lift-off")], name="result")
        await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


def application(url: str, database: str) -> Starlette:
    engine = create_async_engine(database)
    store = VersionedDatabaseTaskStore(engine)
    card = AgentCard(
        name="Countdown",
        description="Counts down",
        version="1.0.0",
        supported_interfaces=[
            AgentInterface(url=url, protocol_binding="JSONRPC", protocol_version="1.0")
        ],
        capabilities=AgentCapabilities(streaming=True),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[AgentSkill(id="countdown", name="Countdown", description="Counts down", tags=["demo"])],
    )
    handler = DefaultRequestHandler(
        agent_executor=Countdown(),
        task_store=store,
        agent_card=card,
        event_stream=DatabaseTaskEventStream(engine),
    )

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        await store.initialize()
        yield
        await handler.aclose()
        await engine.dispose()
        a2a_fencing.uninstrument()  # sends what waits: uvicorn ends by its signal, without atexit

    routes = [*create_agent_card_routes(card), *create_jsonrpc_routes(handler, "/")]
    return Starlette(routes=routes, lifespan=lifespan)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=9001)
    parser.add_argument("--database", default="sqlite+aiosqlite:///tasks.sqlite")
    options = parser.parse_args()
    uvicorn.run(
        application(f"http://127.0.0.1:{options.port}/", options.database),
        host="127.0.0.1",
        port=options.port,
    )
