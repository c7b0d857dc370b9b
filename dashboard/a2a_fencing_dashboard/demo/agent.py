"""The demo's agent: it drafts for a while and then answers in several events, as agents do."""

from __future__ import annotations

import asyncio

from a2a.helpers import new_task_from_user_message, new_text_part
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.tasks import TaskUpdater
from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    Message,
    TaskState,
)
from a2a.utils.constants import PROTOCOL_VERSION_CURRENT, TransportProtocol


class ReportWriter(AgentExecutor):
    """Writes a report: some drafts, each a status update, then two artifacts and the end at once."""

    def __init__(self, *, drafts: int = 3, draft_s: float = 0.15) -> None:
        """Sets how much work a task is.

        Args:
            drafts: Status updates before the answer.
            draft_s: Seconds of work for each of them.
        """
        self._drafts = drafts
        self._draft_s = draft_s

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Answers one message."""
        message = context.message
        if message is None:
            raise ValueError("a report needs a message")
        task = context.current_task
        if task is None:
            task = new_task_from_user_message(message)
            await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        for number in range(1, self._drafts + 1):
            await updater.update_status(TaskState.TASK_STATE_WORKING, _progress(updater, number))
            await asyncio.sleep(self._draft_s)
        await updater.add_artifact([new_text_part("the report")], name="report")
        await updater.add_artifact([new_text_part("its sources")], name="sources")
        await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Ends a task that runs on this replica."""
        await TaskUpdater(event_queue, context.task_id or "", context.context_id or "").cancel()


def _progress(updater: TaskUpdater, number: int) -> Message:
    return updater.new_agent_message([new_text_part(f"draft {number}")])


def agent_card(url: str) -> AgentCard:
    """What the agent says of itself.

    Args:
        url: Where its JSON-RPC endpoint is.
    """
    return AgentCard(
        name="Report writer",
        description="Writes short reports",
        version="1.0.0",
        supported_interfaces=[
            AgentInterface(
                url=url,
                protocol_binding=TransportProtocol.JSONRPC,
                protocol_version=PROTOCOL_VERSION_CURRENT,
            )
        ],
        capabilities=AgentCapabilities(streaming=True),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[AgentSkill(id="report", name="Report", description="Writes a report", tags=["text"])],
    )
