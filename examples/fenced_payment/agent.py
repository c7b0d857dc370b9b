"""An agent that charges a card over HTTP. Its replicas share one task store."""

import argparse
import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import httpx
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

a2a_fencing.instrument()


async def think_for_two_seconds() -> None:
    await asyncio.sleep(2)


class Cashier(AgentExecutor):
    """Thinks about an order, then charges for it."""

    def __init__(
        self, payments: str, think: Callable[[], Awaitable[None]] = think_for_two_seconds
    ) -> None:
        self._payments = payments
        self._think = think

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        task = context.current_task
        if task is None:
            task = new_task_from_user_message(context.message)
            await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        await updater.start_work()
        await self._think()
        order = context.get_user_input()
        if await self._charge(order):
            # One event: of a burst the store refuses only the first when somebody else has
            # finished the task, and the next would overwrite what they stored.
            paid = updater.new_agent_message([new_text_part(f"{order} is paid")])
            await updater.complete(paid)
        else:
            await updater.failed()

    async def _charge(self, order: str) -> bool:
        async with a2a_fencing.dispatch("charge-card", key=order) as d, httpx.AsyncClient() as http:
            response = await http.post(self._payments, json={"order": order}, headers=d.headers)
            if response.is_success:
                d.accepted()
            elif response.is_client_error:
                d.rejected()  # 412: somebody else has the right to act now
            return response.is_success

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


class Replica:
    """One replica's store and handler."""

    def __init__(self, database: str, executor: AgentExecutor, url: str) -> None:
        self.engine = create_async_engine(database)
        self.store = VersionedDatabaseTaskStore(self.engine)
        self.card = AgentCard(
            name="Cashier",
            description="Charges for orders",
            version="1.0.0",
            supported_interfaces=[
                AgentInterface(url=url, protocol_binding="JSONRPC", protocol_version="1.0")
            ],
            capabilities=AgentCapabilities(streaming=True),
            default_input_modes=["text/plain"],
            default_output_modes=["text/plain"],
            skills=[AgentSkill(id="pay", name="Pay", description="Charges a card", tags=["demo"])],
        )
        self.handler = DefaultRequestHandler(
            agent_executor=executor,
            task_store=self.store,
            agent_card=self.card,
            event_stream=DatabaseTaskEventStream(self.engine),
        )

    async def close(self) -> None:
        await self.handler.aclose()
        await self.engine.dispose()


def application(replica: Replica) -> Starlette:
    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        await replica.store.initialize()
        yield
        await replica.close()
        a2a_fencing.uninstrument()  # sends what waits: uvicorn ends by its signal, without atexit

    routes = [
        *create_agent_card_routes(replica.card),
        *create_jsonrpc_routes(replica.handler, "/"),
    ]
    return Starlette(routes=routes, lifespan=lifespan)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=9001)
    parser.add_argument("--database", default="sqlite+aiosqlite:///tasks.sqlite")
    parser.add_argument("--payments", default="http://127.0.0.1:9100/charges")
    options = parser.parse_args()
    replica = Replica(options.database, Cashier(options.payments), f"http://127.0.0.1:{options.port}/")
    uvicorn.run(application(replica), host="127.0.0.1", port=options.port)
