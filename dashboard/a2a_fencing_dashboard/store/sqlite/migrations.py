"""What a store of an older version has to compute to become one of a newer version."""

from __future__ import annotations

import sqlite3
from collections import defaultdict

from a2a_fencing_dashboard.store import codec, summary
from a2a_fencing_dashboard.store.durations import Durations, bucket
from a2a_fencing_dashboard.store.sqlite.tallies import TallyTable
from a2a_fencing_dashboard.store.sqlite.task_counts import count_tasks

_SAVE_TIMES = "save-times"
"""Where version 2 had them: among the counts, where each commit paid for every bucket."""


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
        for index in summary.save_times((fact,)):
            tallies.add_ever(replica, _SAVE_TIMES, str(index), 1)
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


def gather_save_times(db: sqlite3.Connection) -> None:
    """Puts how long a replica's writes took into its row, which each commit writes anyway."""
    db.execute("ALTER TABLE replica ADD COLUMN save_times BLOB")
    saves: defaultdict[int, dict[int, int]] = defaultdict(dict)
    for replica, detail, count in db.execute(
        "SELECT replica, detail, count FROM tally WHERE width = 0 AND measure = ?", (_SAVE_TIMES,)
    ):
        saves[replica][int(detail)] = count
    db.executemany(
        "UPDATE replica SET save_times = ? WHERE id = ?",
        [(Durations(counts).encode(), replica) for replica, counts in saves.items()],
    )
    db.execute("DELETE FROM tally WHERE width = 0 AND measure = ?", (_SAVE_TIMES,))


def spare_scans(db: sqlite3.Connection) -> None:
    """Counts tasks once, and lets findings be counted and chosen without a look at what they say."""
    count_tasks(db)
    db.execute("DROP INDEX finding_list")
    db.execute("CREATE INDEX finding_list ON finding (severity, at, run, rule, task)")
