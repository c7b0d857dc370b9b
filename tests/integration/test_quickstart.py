"""The example that a user copies, run as its README says."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from a2a.client import ClientConfig, create_client
from a2a.helpers import new_text_message
from a2a.types import CancelTaskRequest, Role, SendMessageRequest, TaskState

from a2a_fencing import conventions as c
from support.otlp_sink import otlp_sink
from support.ports import own_port

HOST = "127.0.0.1"
NOBODY = f"http://{HOST}:1"
"""Nobody listens there: a server must not mind."""
SERVER = Path(__file__).parents[2] / "examples" / "quickstart" / "server.py"


@contextlib.contextmanager
def replica(folder: Path, endpoint: str = NOBODY) -> Iterator[str]:
    port = own_port()
    environment = {**os.environ, "A2A_FENCING_ENDPOINT": endpoint}
    command = [sys.executable, str(SERVER), "--port", str(port)]
    with subprocess.Popen(command, cwd=folder, env=environment) as process:
        try:
            url = f"http://{HOST}:{port}"
            wait_for(f"{url}/.well-known/agent-card.json", process)
            yield url
        finally:
            process.terminate()
            process.wait(60)


def wait_for(url: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        assert process.poll() is None, "the server ended"
        with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=5):
            return
        time.sleep(0.05)
    raise AssertionError("the server does not answer")


async def test_a_task_is_cancelled_through_another_replica(tmp_path: Path) -> None:
    with replica(tmp_path) as first, replica(tmp_path) as second:
        config = ClientConfig()
        async with await create_client(first, config) as client, await create_client(second) as other:
            message = new_text_message("count", role=Role.ROLE_USER)
            cancelled = None
            states = []
            async for response in client.send_message(SendMessageRequest(message=message)):
                update = response.status_update if response.HasField("status_update") else response.task
                states.append(update.status.state)
                if cancelled is None and response.HasField("status_update"):
                    cancelled = await other.cancel_task(CancelTaskRequest(id=update.task_id))
            assert cancelled is not None
            assert cancelled.status.state == TaskState.TASK_STATE_CANCELED
            assert states[-1] == TaskState.TASK_STATE_CANCELED


def test_it_says_that_it_ends(tmp_path: Path) -> None:
    with otlp_sink() as sink:
        with replica(tmp_path, sink.url):
            pass
        last = sink.facts_in_logs()[-1]
    assert (last.kind, last.interval_s) == (c.HEARTBEAT, 0.0)
