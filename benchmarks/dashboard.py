"""What the dashboard costs with millions of facts stored while more arrive.

Builds a store by the real ingest (or takes the one that --store names, once it was built), then starts
the real receiver, a load that sends it facts as three replicas do, and the real dashboard, and prints

  - how long the server takes for the first paint of each page and for each refresh: wall and CPU time of
    the script's run, medians (wall time depends on what else the machine does, CPU time does not);
  - the CPU of the dashboard with five sessions open (over their websockets, as a browser has them);
  - the memory of dashboard and receiver in the first and the last fifth of that time, medians:
    what a refresh takes for a moment makes it go up and down.

    python benchmarks/dashboard.py [--facts 10000000] [--tasks 500000] [--store PATH] [--minutes 1]
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import http.client
import multiprocessing
import os
import statistics
import tempfile
import time
from collections.abc import Sequence
from itertools import groupby
from multiprocessing.connection import Connection
from pathlib import Path
from urllib.parse import urlsplit

import dashboard_sessions
from dashboard_history import BIG_TASK, NS, STORE, LoadTest
from dashboard_sessions import HOST, Run, Session
from dashboard_store import build
from receiver import as_logs

from a2a_fencing.facts import Fact, TaskKey
from a2a_fencing_dashboard.ports import free_port
from a2a_fencing_dashboard.processes import Supervisor
from a2a_fencing_dashboard.services import base_url, start_receiver
from a2a_fencing_dashboard.store import open_store
from a2a_fencing_dashboard.store.protocol import Window
from a2a_fencing_dashboard.ui import links

SEND_EVERY_S = 0.5
"""As the outbox of a replica does."""
PAGE_MS, TASK_MS = 300, 500
SCRAPES = 10
OPEN_TOGETHER = ("Overview", "Tasks", "Alerts", "Task with 5,000 facts", "Overview, last hour")

_MOST_FACTS = "most facts first"

Page = tuple[str, str, dict[str, str]]
"""Name, path and query."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--facts", type=int, default=10_000_000)
    parser.add_argument("--tasks", type=int, help="[default: one for each 20 facts]")
    parser.add_argument("--store", type=Path, help="a file to keep; taken as it is where it exists")
    parser.add_argument("--rate", type=int, default=2_000, help="facts a second that arrive")
    parser.add_argument("--sessions", type=int, default=5)
    parser.add_argument("--minutes", type=float, default=1.0, help="with the sessions open")
    parser.add_argument("--rounds", type=int, default=2, help="first paints of each page")
    parser.add_argument("--refreshes", type=int, default=4, help="of each of them")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = (arguments.store or Path(folder) / "facts.sqlite").resolve()
        if not path.exists():
            print(f"building {arguments.facts:,} facts", flush=True)
            build(f"sqlite:///{path}", arguments.facts, arguments.tasks or arguments.facts // 20)
        measure(f"sqlite:///{path}", arguments)


def measure(store_url: str, arguments: argparse.Namespace) -> None:
    tasks = describe(store_url)
    told, tells = multiprocessing.Pipe(duplex=False)
    with Supervisor() as supervisor:
        endpoint = start_receiver(
            supervisor, store_url=store_url, host=HOST, port=free_port(HOST, 0, exact=True)
        )
        supervisor.start("load", feed, endpoint=endpoint, rate=arguments.rate)
        port = free_port(HOST, 0, exact=True)
        served = supervisor.start(
            "dashboard", dashboard_sessions.serve, store_url=store_url, port=port, tells=tells
        )
        supervisor.wait_listening(served, HOST, port)
        print(f"{'':36}{'first paint':>22}{'refresh':>22}{'target':>10}")
        print(f"{'ms, median':36}{'wall':>14}{'CPU':>8}{'wall':>14}{'CPU':>8}", flush=True)
        for page in pages(tasks):
            asyncio.run(paint(port, page, told, arguments.rounds, arguments.refreshes))
        scrape(endpoint)
        asyncio.run(open_together(port, told, tasks, arguments.sessions, arguments.minutes))
    describe(store_url)


def describe(store_url: str) -> int:
    store = open_store(store_url)
    try:
        view = store.overview(Window())
        runs = store.runs()
    finally:
        store.close()
    size = os.path.getsize(store_url.removeprefix("sqlite:///")) / 2**30
    print(
        f"{view.facts:,} facts, {view.tasks:,} tasks ({view.violated_tasks:,} violated),"
        f" {len(runs)} runs, {sum(view.conflicts.values()):,} conflicts,"
        f" {view.terminal_rejections:,} terminal rejections, {sum(view.drops.values()):,} drops,"
        f" {size:.2f} GiB"
    )
    return view.tasks


def pages(tasks: int) -> list[Page]:
    deep = str(max(1, tasks // 50 // 2))
    big = links.task_query(TaskKey(STORE, "user-0", BIG_TASK))
    return [
        ("Overview", "", {}),
        ("Overview, last hour", "", {"range": "last hour"}),
        ("Overview, one run", "", {"run": "load-04"}),
        ("Tasks", "tasks", {}),
        ("Tasks, last 24 hours", "tasks", {"range": "last 24 hours"}),
        ("Tasks with '1f3' in an id", "tasks", {"q": "1f3"}),
        ("Tasks with 'e1' in an id", "tasks", {"q": "e1"}),
        (f"Tasks, page {int(deep):,}", "tasks", {"page": deep}),
        (f"Tasks, most facts first, page {int(deep):,}", "tasks", {"page": deep, "sort": _MOST_FACTS}),
        (f"Tasks by id, page {int(deep):,}", "tasks", {"page": deep, "sort": "by task id"}),
        ("Tasks violated, worst first", "tasks", {"verdict": "violated", "sort": "worst verdict first"}),
        ("Tasks with a conflict, by id", "tasks", {"has": "conflict", "sort": "by task id"}),
        ("Tasks of a replica, most facts", "tasks", {"replica": "api-1", "sort": _MOST_FACTS}),
        ("Tasks by broken rule", "tasks", {"rule": "terminal-overwritten"}),
        ("Alerts", "alerts", {}),
        (f"Alerts, page {max(1, tasks // 2_000):,}", "alerts", {"page": str(max(1, tasks // 2_000))}),
        ("Runs", "runs", {}),
        ("Task with 5,000 facts", "task", dict(big)),
    ]


# --- what is measured -------------------------------------------------------------------------------


async def paint(port: int, page: Page, told: Connection, rounds: int, refreshes: int) -> None:
    """Prints how long the server takes for this page."""
    name, path, query = page
    first: list[Run] = []
    later: list[Run] = []
    for _ in range(rounds):
        runs = await _runs(Session(port, name, path, query), told, name, 1 + refreshes)
        first += runs[:1]
        later += runs[1:]
    target = TASK_MS if path == "task" else PAGE_MS
    figures = "".join(
        f"{1000 * statistics.median(run.wall for run in runs):14,.0f}"
        f"{1000 * statistics.median(run.cpu for run in runs):8,.0f}"
        for runs in (first, later)
    )
    print(f"{name:36}{figures}{f'< {target}':>10}", flush=True)


async def _runs(session: Session, told: Connection, name: str, count: int) -> list[Run]:
    looking = asyncio.create_task(session.look())
    found: list[Run] = []
    try:
        while len(found) < count:
            # A session that has left may still be told of.
            found += [run for run in _told(told) if run.name == name]
            if looking.done():
                looking.result()
            await asyncio.sleep(0.02)
        session_of = found[-1].session
        return [run for run in found if run.session == session_of][:count]
    finally:
        looking.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await looking


def _told(told: Connection) -> list[Run]:
    runs = []
    while told.poll():
        runs.append(told.recv())
    return runs


def scrape(endpoint: str) -> None:
    took = []
    for _ in range(SCRAPES):
        connection = http.client.HTTPConnection(urlsplit(endpoint).netloc)
        began = time.perf_counter()
        connection.request("GET", "/metrics")
        assert connection.getresponse().read()
        took.append(time.perf_counter() - began)
        connection.close()
    print(f"{'/metrics of the receiver':36}{1000 * statistics.median(took):14,.0f}", flush=True)


async def open_together(port: int, told: Connection, tasks: int, count: int, minutes: float) -> None:
    """Prints what several sessions cost that stay open."""
    known = {page[0]: page for page in pages(tasks)}
    names = [OPEN_TOGETHER[n % len(OPEN_TOGETHER)] for n in range(count)]
    sessions = [Session(port, *known[name]) for name in names]
    looking = [asyncio.create_task(session.look()) for session in sessions]
    await asyncio.sleep(5)
    children = {child.name: child.pid or 0 for child in multiprocessing.active_children()}
    before = {name: _cpu_s(pid) for name, pid in children.items()}
    memory: dict[str, list[float]] = {name: [] for name in children}
    _told(told)
    began, runs = time.monotonic(), 0
    while (seconds := time.monotonic() - began) < 60 * minutes:
        runs += len(_told(told))
        for task in looking:
            if task.done():
                task.result()
        for name, pid in children.items():
            memory[name].append(_rss(pid))
        await asyncio.sleep(0.2)
    print(f"{count} sessions open for {seconds:.0f} s, {runs / seconds:.1f} refreshes a second")
    print(f"{'':36}{'cores':>10}{'MiB, first fifth':>20}{'last fifth':>14}{'most':>10}")
    for name, pid in children.items():
        cores = (_cpu_s(pid) - before[name]) / seconds
        fifth = max(1, len(memory[name]) // 5)
        first, last = (statistics.median(part) for part in (memory[name][:fifth], memory[name][-fifth:]))
        print(f"{name:36}{cores:10.2f}{first:20,.0f}{last:14,.0f}{max(memory[name]):10,.0f}")
    for task in looking:
        task.cancel()
    await asyncio.gather(*looking, return_exceptions=True)


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _rss(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


# --- what arrives meanwhile -------------------------------------------------------------------------


def feed(endpoint: str, rate: int) -> None:
    """Sends facts as three replicas do, at this rate. For a process of its own."""
    load = LoadTest("live", None, 20, time.time_ns(), rate=rate, seed=time.time_ns())
    connection = http.client.HTTPConnection(urlsplit(endpoint).netloc)
    assert base_url(HOST, connection.port) == endpoint
    due: list[Fact] = []
    until = time.time_ns()
    for fact in load.facts():
        if fact.time_unix_nano > until:
            _send(connection, due)
            due = []
            until += int(SEND_EVERY_S * NS)
            time.sleep(max(0.0, (until - time.time_ns()) / NS))
        due.append(fact)


def _send(connection: http.client.HTTPConnection, facts: Sequence[Fact]) -> None:
    by_replica = sorted(facts, key=lambda fact: fact.replica)
    for _, own in groupby(by_replica, key=lambda fact: fact.replica):
        body = as_logs(list(own))
        status = 0
        while status != 200:
            connection.request("POST", "/v1/logs", body, {"Content-Type": "application/x-protobuf"})
            response = connection.getresponse()
            response.read()
            status = response.status
            assert status in (200, 503), status


if __name__ == "__main__":
    main()
