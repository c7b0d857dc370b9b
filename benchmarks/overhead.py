"""What the instrumentation costs the host: CPU per task, as a ratio to the bare SDK in the same run.

Tasks of eight writes pass through a real handler and the versioned store. Bare, instrumented (facts and
spans exported to a live receiver in another process) and the SDK's own tracing (no-op exporter) have
a process each. Warmed up, they take turns of some seconds; each turn is compared with the turns of the
bare process right before and after it, so that a machine that gets slower or faster meanwhile slows or
speeds both. Printed is the median over all turns. New processes take over several times, in another
order each time, because two of one kind differ, too, and so does who comes first. CPU is that of the
whole process, exporter thread included, from the beginning of its turn to that of its next: what it
sends between its turns is part of the price.

    python benchmarks/overhead.py [--dsn DSN] [--rounds 5] [--turns 6] [--tasks 60]
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
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from uuid import uuid4

READY = "ready"
BARE, FENCED, GUARDED, TRACED = "bare", "a2a-fencing", "a2a-fencing, guard", "sdk tracing"
WRITES = 8
WARM_UP = 25


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--dsn", help="async SQLAlchemy DSN; a SQLite file by default")
    parser.add_argument("--rounds", type=int, default=5, help="of new processes")
    parser.add_argument("--turns", type=int, default=6, help="of each process")
    parser.add_argument("--tasks", type=int, default=60, help="a turn")
    parser.add_argument("--modes", default=f"{BARE};{FENCED};{TRACED}")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--endpoint", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        asyncio.run(run(arguments.child, arguments.dsn, arguments.tasks, arguments.endpoint))
    else:
        compare(arguments)


# --- the process that is measured -------------------------------------------------------------------


async def run(
    mode: str, dsn: str, tasks: int, endpoint: str, after_each: Callable[[], None] = lambda: None
) -> None:
    """Runs so many tasks in one mode for each line it is sent; then tells what there was before."""
    if mode == TRACED:
        trace_like_the_sdk()
    from a2a.server.cluster import DatabaseTaskEventStream, VersionedDatabaseTaskStore
    from a2a.server.context import ServerCallContext
    from a2a.server.request_handlers import DefaultRequestHandlerV2
    from a2a.types.a2a_pb2 import AgentCapabilities, AgentCard
    from sqlalchemy.ext.asyncio import create_async_engine

    if mode in (FENCED, GUARDED):
        import a2a_fencing

        count_our_spans()
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
        after_each()

    for _ in range(WARM_UP):
        await one()
    statements = count_statements(engine)
    print(READY, flush=True)
    while sys.stdin.readline():
        told = {"cpu_s": time.process_time(), "facts": last_fact(mode), "spans": SPANS}
        told["sql"] = len(statements)
        for _ in range(tasks):
            await one()
        print(json.dumps(told), flush=True)
    await handler.aclose()
    await engine.dispose()


def count_statements(engine) -> list[None]:
    """One item for each SQL statement from now on: what is refused or observed must not add any."""
    from sqlalchemy import event

    statements: list[None] = []

    def note(*_) -> None:
        statements.append(None)

    event.listen(engine.sync_engine, "before_cursor_execute", note)
    return statements


SPANS = 0


def count_our_spans() -> None:
    """Counts them by the request, which costs what is measured nothing."""
    from a2a_fencing import outbox

    make = outbox.traces_request

    def counted(ours, others, sender):
        global SPANS
        SPANS += len(ours) + len(others)
        return make(ours, others, sender)

    outbox.traces_request = counted


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


COUNTED = ("facts", "spans", "sql")
UNCOUNTED = 3
"""Turns beside those that are counted: the first, in which the warm-up still goes out; the one after the
last, before which nobody knows what that cost; and one more of the bare process to compare it with.
"""


def compare(arguments: argparse.Namespace) -> None:
    modes = list(dict.fromkeys((BARE, *arguments.modes.split(";"))))
    cpu: dict[str, list[float]] = {mode: [] for mode in modes}
    ratios: dict[str, list[float]] = {mode: [] for mode in modes}
    counts: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder, receiver(folder) as endpoint:
        for round_ in range(arguments.rounds):
            first = round_ % len(modes)
            children = [
                Child(mode, arguments, f"{folder}/{round_}-{number}", endpoint)
                for number, mode in enumerate((*modes[first:], *modes[:first]))
            ]
            for _ in range(arguments.turns + UNCOUNTED):
                for child in children:
                    child.take_turn()
            place = next(number for number, child in enumerate(children) if child.mode == BARE)
            bare = children[place].costs()
            for number, child in enumerate(children):
                child.stop()
                # Each turn stands between two of the bare process, which has one more for that.
                costs = child.costs()[1:] if number < place else child.costs()[:-1]
                cpu[child.mode] += costs
                ratios[child.mode] += [
                    cost / (before + after) * 2
                    for cost, (before, after) in zip(costs, pairwise(bare), strict=True)
                ]
                counts[child.mode] = child.counts()
        stored = count_facts(folder)
    print(
        f"{arguments.rounds} rounds of {arguments.turns} turns of {arguments.tasks} tasks, {WRITES}"
        f" writes a task, {arguments.dsn or 'SQLite'}, Python {sys.version.split()[0]}"
    )
    print(
        f"{'':20} {'CPU ms/task':>12} {'to bare':>9} {'middle half':>18} {'facts/task':>11}"
        f" {'spans/task':>11} {'SQL/task':>9}"
    )
    for mode in modes:
        low, median, high = statistics.quantiles(ratios[mode], n=4)
        middle = f"{(low - 1) * 100:+.1f} .. {(high - 1) * 100:+.1f}%" if mode != BARE else ""
        to_bare = f"{(median - 1) * 100:+.1f}%" if mode != BARE else ""
        each = " ".join(f"{counts[mode][name]:11.1f}" for name in COUNTED[:2])
        print(f"{mode:20} {statistics.median(cpu[mode]):12.2f} {to_bare:>9} {middle:>18} {each}"
              f" {counts[mode]['sql']:9.1f}")  # fmt: skip
    print(f"facts the receiver stored: {stored}")


class Child:
    """A process of one mode, which works only when it is its turn."""

    def __init__(self, mode: str, arguments: argparse.Namespace, path: str, endpoint: str) -> None:
        self.mode = mode
        self._tasks = arguments.tasks
        self._log = Path(f"{path}.log")
        command = [
            sys.executable, __file__, "--child", mode, "--tasks", str(arguments.tasks),
            "--dsn", arguments.dsn or f"sqlite+aiosqlite:///{path}.db", "--endpoint", endpoint,
        ]  # fmt: skip
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log.open("w"),
            text=True,
            env={**os.environ, "PYTHONWARNINGS": "ignore"},
        )
        self._listen()
        self._told: list[dict[str, float]] = []

    def take_turn(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write("go\n")
        self._process.stdin.flush()
        self._told.append(json.loads(self._listen()))

    def stop(self) -> None:
        self._process.communicate()

    def costs(self) -> list[float]:
        """CPU a task in each turn but the first and the last, ms."""
        cpu = [told["cpu_s"] for told in self._told[1:]]
        return [(after - before) / self._tasks * 1e3 for before, after in pairwise(cpu)]

    def counts(self) -> dict[str, float]:
        """What there was of each a task."""
        first, last = self._told[0], self._told[-1]
        tasks = self._tasks * (len(self._told) - 1)
        return {name: (last[name] - first[name]) / tasks for name in COUNTED}

    def _listen(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            sys.exit(self._log.read_text())
        return line


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
