"""The payment example: the table in its README is what it prints, and its servers work."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import httpx
from a2a.client import create_client
from a2a.helpers import new_text_message
from a2a.types import Role, SendMessageRequest, TaskState

from a2a_fencing import conventions as c
from a2a_fencing.checker import check
from a2a_fencing.facts import Fact
from a2a_fencing.scoped import is_scoped
from a2a_fencing_dashboard.store.protocol import TaskFilter, Window
from a2a_fencing_dashboard.store.summary import is_finish
from support.cluster import until
from support.receiver import ReceiverProcess, receiver
from support.servers import EXAMPLES, example

FOLDER = EXAMPLES / "fenced_payment"


def test_the_readme_shows_the_table_that_is_printed(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-W", "error", str(FOLDER / "three_cases.py")],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert (run.returncode, run.stderr) == (0, "")
    assert len(run.stdout.splitlines()) == 4
    assert run.stdout in (FOLDER / "README.md").read_text()


async def test_an_order_is_charged_once_and_not_without_a_token(tmp_path: Path) -> None:
    with (
        example("fenced_payment/payments.py", folder=tmp_path, ready="/charges") as payments,
        example(
            "fenced_payment/agent.py",
            "--payments",
            f"{payments}/charges",
            folder=tmp_path,
            ready="/.well-known/agent-card.json",
        ) as agent,
    ):
        states = []
        async with await create_client(agent) as client:
            message = new_text_message("order-17", role=Role.ROLE_USER)
            async for response in client.send_message(SendMessageRequest(message=message)):
                if response.HasField("status_update"):
                    states.append(response.status_update.status.state)
        assert states[-1] == TaskState.TASK_STATE_COMPLETED
        async with httpx.AsyncClient(trust_env=False) as http:
            refused = await http.post(f"{payments}/charges", json={"order": "order-18"})
            done = (await http.get(f"{payments}/charges")).json()
    assert refused.status_code == 428
    assert done == {"requests": 2, "charges": [{"order": "order-17", "charged": True}]}


async def test_what_the_payment_service_answered_stands_in_the_history_of_the_task(
    tmp_path: Path,
) -> None:
    with receiver(tmp_path / "facts.sqlite") as dashboard:
        options = {"folder": tmp_path, "endpoint": dashboard.url}
        with (
            example("fenced_payment/payments.py", ready="/charges", **options) as payments,
            example(
                "fenced_payment/agent.py",
                "--payments",
                f"{payments}/charges",
                ready="/.well-known/agent-card.json",
                **options,
            ) as agent,
        ):
            async with await create_client(agent) as client:
                message = new_text_message("order-17", role=Role.ROLE_USER)
                async for _ in client.send_message(SendMessageRequest(message=message)):
                    pass

            async def told() -> bool:
                facts = _facts(dashboard)
                finished = {fact.kind for fact in facts if fact.phase == c.FINISHED or is_finish(fact)}
                dispatches = [fact for fact in facts if fact.kind == c.DISPATCH]
                return finished == {c.EXECUTION, c.WRITE} and len(dispatches) == 3

            await until(told, 60)
        facts = _facts(dashboard)
    report = check(facts)
    dispatches = [fact for fact in facts if fact.kind == c.DISPATCH]
    started, ended = (fact for fact in dispatches if fact.origin is None)
    (answered,) = (fact for fact in dispatches if fact.origin == c.FROM_RESOURCE)
    assert answered.replica != started.replica
    assert (answered.name, answered.outcome, answered.reason) == ("payments", c.ACCEPTED, None)
    assert (answered.dispatch_id, answered.attempt) == (started.id, ended.attempt)
    assert {fact.task for fact in facts} == {started.task}
    assert report.findings == ()


def _facts(dashboard: ReceiverProcess) -> list[Fact]:
    """What has been told of tasks whose owner and store are known."""
    with dashboard.stored() as store:
        rows, _ = store.tasks(Window(), TaskFilter())
        return [fact for row in rows if not is_scoped(row.key) for fact in store.facts_of(row.key)]
