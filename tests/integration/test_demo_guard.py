"""The same demo with the guard on: what was overwritten before is not any more."""

from __future__ import annotations

import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from a2a.types import StreamResponse, TaskState

from a2a_fencing import conventions as c
from a2a_fencing_dashboard.store import open_store
from a2a_fencing_dashboard.store.protocol import Window

PROGRAM = "import sys; from a2a_fencing_dashboard.cli import main; sys.exit(main())"


def test_nothing_is_overwritten_and_the_guard_is_seen_to_hold(tmp_path: Path) -> None:
    arguments = ["demo", "--headless", "--seconds", "6", "--guard", "--folder", str(tmp_path)]
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments], capture_output=True, text=True, check=False
    )
    assert (run.returncode, run.stderr) == (0, "")
    assert re.search(r"fenced-by-guard [1-9]", run.stdout), run.stdout
    assert "again with the guard" not in run.stdout

    store = open_store(f"sqlite:///{tmp_path / 'facts.sqlite'}")
    with closing(store):
        assert store.overview(Window()).violations.get(c.TERMINAL_OVERWRITTEN, 0) == 0
        assert all(replica.guard for replica in store.replicas(Window()))
    assert _overwritten(tmp_path / "tasks.sqlite") == []


def _overwritten(database: Path) -> list[str]:
    """Tasks with two different terminal states in their history, by the SDK's own event log."""
    finals: dict[str, set[int]] = {}
    with closing(sqlite3.connect(database)) as db:
        rows = db.execute("SELECT task_id, event_data FROM task_events").fetchall()
    assert len(rows) > 20
    for task_id, data in rows:
        state = StreamResponse.FromString(data).status_update.status.state
        if TaskState.Name(state).removeprefix("TASK_STATE_") in c.TERMINAL_STATES:
            finals.setdefault(task_id, set()).add(state)
    return [task_id for task_id, states in finals.items() if len(states) > 1]
