"""What the instrumentation costs the host: CPU per task, as a ratio to the bare SDK in the same run.

Tasks of eight writes pass through a real handler and the versioned store. Bare, instrumented (facts and
spans exported to a live receiver in another process) and the SDK's own tracing (no-op exporter) take
turns in processes of their own; medians over the turns are printed. CPU is that of the whole process,
exporter thread included; start-up and warm-up are not counted.

    python benchmarks/overhead.py [--dsn DSN] [--rounds 7] [--tasks 150]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from uuid import uuid4

BARE, FENCED, GUARDED, TRACED = "bare", "a2a-fencing", "a2a-fencing, guard", "sdk tracing"
WRITES = 8
WARM_UP = 25


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--dsn", help="async SQLAlchemy DSN; a SQLite file by default")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--tasks", type=int, default=150, help="per process")
    parser.add_argument("--modes", default=f"{BARE};{FENCED};{TRACED}")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--endpoint", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        measured = run(arguments.child, arguments.dsn, arguments.tasks, arguments.endpoint)
        print(json.dumps(asyncio.run(measured)))
    else:
        compare(arguments)


# --- the process that is measured -------------------------------------------------------------------


async def run(mode: str, dsn: str, tasks: int, endpoint: str) -> dict[str, float]:
    """Runs tasks in one mode and tells their CPU."""
    if mode == TRACED:
        trace_like_the_sdk()
    from a2a.server.cluster import DatabaseTaskEventStream, VersionedDatabaseTaskStore
    from a2a.server.context import ServerCallContext
    from a2a.server.request_handlers import DefaultRequestHandlerV2
    from a2a.types.a2a_pb2 import AgentCapabilities, AgentCard
    from sqlalchemy.ext.asyncio import create_async_engine

    if mode in (FENCED, GUARDED):
        import a2a_fencing

        a2a_fencing.instrument(endpoint=endpoint, guard=mode == GUARDED)
    engine = create_async_engine(dsn)
    store = VersionedDatabaseTaskStore(engine)
    await store.initialize()
    stream = DatabaseTaskEventStream(engine)
    await stream.initialize()
    card = AgentCard(name="bench", version="1", capabilities=AgentCapabilities(streaming=True))
    handler = DefaultRequestHandlerV2(executor(), store, card, event_stream=stream)

    async def one() -> None:
        await handler.on_message_send(message(), ServerCallContext())

    for _ in range(WARM_UP):
        await one()
    statements = count_statements(engine)
    before, facts = time.process_time(), last_fact(mode)
    for _ in range(tasks):
        await one()
    if mode in (FENCED, GUARDED):
        from a2a_fencing.instrumentor import A2AFencingInstrumentor

        A2AFencingInstrumentor().flush(30)  # what is still queued is part of the price
    cpu = time.process_time() - before
    facts = last_fact(mode) - facts
    await handler.aclose()
    await engine.dispose()
    return {
        "cpu_ms": cpu / tasks * 1e3,
        "facts": facts / tasks,
        "spans": SPANS / (tasks + WARM_UP),
        "sql": len(statements) / tasks,
    }


def count_statements(engine) -> list[None]:
    """One item for each SQL statement from now on: what is refused or observed must not add any."""
    from sqlalchemy import event

    statements: list[None] = []

    def note(*_) -> None:
        statements.append(None)

    event.listen(engine.sync_engine, "before_cursor_execute", note)
    return statements


SPANS = 0


def trace_like_the_sdk() -> None:
    """A TracerProvider as an application would set it up, exporting to nowhere."""
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

    class Nowhere(SpanExporter):
        def export(self, spans):
            global SPANS
            SPANS += len(spans)
            return SpanExportResult.SUCCESS

        def shutdown(self):
            pass

    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(Nowhere()))
    trace.set_tracer_provider(provider)


def last_fact(mode: str) -> int:
    if mode not in (FENCED, GUARDED):
        return 0
    from a2a_fencing import recorder

    active = recorder.active()
    return active.last if active is not None else 0


def executor():
    from a2a.server.agent_execution import AgentExecutor
    from a2a.types.a2a_pb2 import (
        Artifact,
        Part,
        Task,
        TaskArtifactUpdateEvent,
        TaskState,
        TaskStatus,
        TaskStatusUpdateEvent,
    )

    class Eight(AgentExecutor):
        async def execute(self, context, event_queue):
            ids = {"task_id": context.task_id, "context_id": context.context_id}
            await event_queue.enqueue_event(
                Task(
                    id=context.task_id,
                    context_id=context.context_id,
                    status=TaskStatus(state=TaskState.TASK_STATE_SUBMITTED),
                )
            )
            for step in range(3):
                working = TaskStatus(state=TaskState.TASK_STATE_WORKING)
                await event_queue.enqueue_event(TaskStatusUpdateEvent(**ids, status=working))
                part = Artifact(artifact_id=f"a{step}", parts=[Part(text="result " * 8)])
                await event_queue.enqueue_event(TaskArtifactUpdateEvent(**ids, artifact=part))
            done = TaskStatus(state=TaskState.TASK_STATE_COMPLETED)
            await event_queue.enqueue_event(TaskStatusUpdateEvent(**ids, status=done))

        async def cancel(self, context, event_queue):
            pass

    return Eight()


def message():
    from a2a.types.a2a_pb2 import Message, Part, Role, SendMessageRequest

    return SendMessageRequest(
        message=Message(message_id=str(uuid4()), role=Role.ROLE_USER, parts=[Part(text="go")])
    )


# --- the comparison ---------------------------------------------------------------------------------


def compare(arguments: argparse.Namespace) -> None:
    modes = arguments.modes.split(";")
    results: dict[str, list[dict[str, float]]] = {mode: [] for mode in modes}
    with tempfile.TemporaryDirectory() as folder, receiver(folder) as endpoint:
        for turn in range(arguments.rounds):
            for mode in modes if turn % 2 else reversed(modes):
                dsn = arguments.dsn or f"sqlite+aiosqlite:///{folder}/{turn}-{modes.index(mode)}.db"
                results[mode].append(child(mode, dsn, arguments.tasks, endpoint))
        stored = count_facts(folder)
    bare = statistics.median(result["cpu_ms"] for result in results[BARE])
    print(f"{arguments.rounds} rounds of {arguments.tasks} tasks, {WRITES} writes a task, "
          f"{arguments.dsn or 'SQLite'}, Python {sys.version.split()[0]}")  # fmt: skip
    print(
        f"{'':20} {'CPU ms/task':>12} {'to bare':>9} {'facts/task':>11} {'spans/task':>11}"
        f" {'SQL/task':>9}"
    )
    for mode in modes:
        cpu = statistics.median(result["cpu_ms"] for result in results[mode])
        facts = statistics.median(result["facts"] for result in results[mode])
        spans = statistics.median(result["spans"] for result in results[mode])
        sql = statistics.median(result["sql"] for result in results[mode])
        print(f"{mode:20} {cpu:12.2f} {(cpu / bare - 1) * 100:+8.1f}% {facts:11.1f} {spans:11.1f}"
              f" {sql:9.1f}")  # fmt: skip
    print(f"facts the receiver stored: {stored}")


def child(mode: str, dsn: str, tasks: int, endpoint: str) -> dict[str, float]:
    command = [
        sys.executable, __file__, "--child", mode, "--dsn", dsn, "--tasks", str(tasks),
        "--endpoint", endpoint,
    ]  # fmt: skip
    quiet = {**os.environ, "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=quiet)
    if done.returncode:
        sys.exit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


from contextlib import contextmanager  # noqa: E402


@contextmanager
def receiver(folder: str):
    """A live receiver in a process of its own."""
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "-m", "a2a_fencing_dashboard", "collect", "--otlp-port", str(port),
         "--store", f"sqlite:///{folder}/facts.sqlite"],
        stdout=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def count_facts(folder: str) -> int:
    from a2a_fencing_dashboard.store import open_store
    from a2a_fencing_dashboard.store.protocol import Window

    path = Path(folder) / "facts.sqlite"
    store = open_store(f"sqlite:///{path}")
    try:
        return store.overview(Window()).facts
    finally:
        store.close()


if __name__ == "__main__":
    main()
