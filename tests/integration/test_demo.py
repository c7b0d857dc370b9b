"""The demo as a person runs it: real processes, the real SDK, a real database."""

from __future__ import annotations

import contextlib
import json
import re
import sqlite3
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from a2a_fencing import conventions as c
from a2a_fencing_dashboard.cli import main
from a2a_fencing_dashboard.store import open_store
from a2a_fencing_dashboard.store.protocol import Window

SECONDS = "8"
COMMAND = [
    sys.executable,
    "-c",
    "import sys; from a2a_fencing_dashboard.cli import main; sys.exit(main())",
]


@dataclass(frozen=True)
class Run:
    folder: Path
    returncode: int
    out: str
    err: str

    def figure(self, label: str) -> int:
        found = re.search(rf"^ *{re.escape(label)} +([\d,]+)\b", self.out, re.MULTILINE)
        assert found, f"{label} is not in:\n{self.out}"
        return int(found[1].replace(",", ""))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("demo")
    arguments = ["demo", "--headless", "--seconds", SECONDS, "--folder", str(folder)]
    done = subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, check=False)
    return Run(folder, done.returncode, done.stdout, done.stderr)


def test_it_runs_without_a_complaint(run: Run) -> None:
    assert (run.returncode, run.err) == (0, "")
    assert "failed requests" not in run.out


def test_the_summary_counts_what_the_receiver_stored(run: Run) -> None:
    store = open_store(f"sqlite:///{run.folder / 'facts.sqlite'}")
    try:
        overview = store.overview(Window())
        replicas = store.replicas(Window())
    finally:
        store.close()
    assert sorted(replica.name for replica in replicas) == ["api-0", "api-1", "api-2"]
    assert f"3 replicas, {overview.tasks:,} tasks, {overview.writes:,} writes" in run.out
    assert f"history complete: {overview.facts:,} of {overview.facts:,} facts" in run.out
    assert run.figure("conflicts") == sum(overview.conflicts.values()) > 0
    assert run.figure("dropped events") == sum(overview.drops.values()) > 0
    assert run.figure("terminal rejections") == overview.terminal_rejections
    assert run.figure(c.TERMINAL_OVERWRITTEN) == overview.violations[c.TERMINAL_OVERWRITTEN] > 0


def test_every_task_of_the_database_was_seen(run: Run) -> None:
    with contextlib.closing(sqlite3.connect(run.folder / "tasks.sqlite")) as db:
        (tasks,) = db.execute("SELECT count(*) FROM tasks").fetchone()
    assert f" {tasks:,} tasks, " in run.out


def test_each_violation_is_real(run: Run) -> None:
    """The stored state is not the one in the CANCELED (or other final) event that clients were sent."""
    tasks = violated_tasks(run.folder)
    assert (
        f"confirmed in the tasks' own database: {len(tasks):,} of {len(tasks):,} violated task"
        in run.out
    )
    with contextlib.closing(sqlite3.connect(run.folder / "tasks.sqlite")) as db:
        for task in tasks:
            (status,) = db.execute("SELECT status FROM tasks WHERE id = ?", (task,)).fetchone()
            state = json.loads(status)["state"].removeprefix("TASK_STATE_")
            events = db.execute("SELECT event_data FROM task_events WHERE task_id = ?", (task,))
            assert ended_otherwise([data for (data,) in events], state), task


def violated_tasks(folder: Path) -> set[str]:
    store = open_store(f"sqlite:///{folder / 'facts.sqlite'}")
    try:
        rows, total = store.findings(Window(), rules=(c.TERMINAL_OVERWRITTEN,), limit=100_000)
    finally:
        store.close()
    assert len(rows) == total
    return {row.finding.task.task_id for row in rows}


def ended_otherwise(events: list[bytes], state: str) -> bool:
    from a2a.types import StreamResponse, TaskState

    updates = [StreamResponse.FromString(data).status_update for data in events]
    names = {TaskState.Name(update.status.state).removeprefix("TASK_STATE_") for update in updates}
    return bool((names & c.TERMINAL_STATES) - {state})


def test_check_comes_to_the_same_verdict(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(run.folder / "facts.sqlite")]) == 1
    out = capsys.readouterr().out
    assert out.startswith("VIOLATED: ")
    assert out.count("terminal-overwritten  critical, proven") == run.figure(c.TERMINAL_OVERWRITTEN)
