"""What a store of an older version has to compute to become one of a newer version."""

from __future__ import annotations

import sqlite3

from a2a_fencing_dashboard.store import codec, summary
from a2a_fencing_dashboard.store.durations import bucket
from a2a_fencing_dashboard.store.sqlite.tallies import TallyTable


def measure_durations(db: sqlite3.Connection) -> None:
    """Computes from all stored facts what later versions keep up to date with each batch."""
    db.execute("ALTER TABLE task ADD COLUMN finished INTEGER")
    db.execute("ALTER TABLE replica ADD COLUMN first_work INTEGER")
    db.execute("ALTER TABLE replica ADD COLUMN last_work INTEGER")
    tallies = TallyTable(db)
    finished: dict[int, int] = {}
    work: dict[int, tuple[int, int]] = {}
    for task, replica, body in db.execute("SELECT task, replica, body FROM fact WHERE task <> 0"):
        fact = codec.decode(body, replica="", n=0, task=None)
        time = fact.time_unix_nano
        first, last = work.get(replica, (time, time))
        work[replica] = min(first, time), max(last, time)
        if summary.is_finish(fact):
            finished[task] = min(finished.get(task, time), time)
        for measure, detail, count in summary.durations((fact,)):
            tallies.add_ever(replica, measure, detail, count)
    db.executemany("UPDATE task SET finished = ? WHERE id = ?", [(t, i) for i, t in finished.items()])
    db.executemany(
        "UPDATE replica SET first_work = ?, last_work = ? WHERE id = ?",
        [(first, last, replica) for replica, (first, last) in work.items()],
    )
    for origin, took in db.execute(
        "SELECT origin, finished - first FROM task WHERE finished IS NOT NULL"
    ):
        tallies.add_ever(origin, summary.TASK_TIMES, str(bucket(took)), 1)
    tallies.write()
