"""A store of an older version is brought up to date, with the figures it would have had."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from a2a_fencing_dashboard.store import StoreError, open_store
from a2a_fencing_dashboard.store.protocol import Store
from a2a_fencing_dashboard.store.sqlite import schema
from support.reports import Cluster

COUNTED = "SELECT width, measure, detail, replica, count FROM tally WHERE count <> 0 ORDER BY 1, 2, 3, 4"
KEPT = (
    COUNTED,
    "SELECT id, finished, first, last FROM task ORDER BY id",
    "SELECT id, first_work, last_work, save_times FROM replica ORDER BY id",
    "SELECT name, sql FROM sqlite_master WHERE type = 'index' ORDER BY name",
    "SELECT * FROM task_count WHERE count <> 0 ORDER BY 1, 2, 3, 4",
)


def figures(path: Path) -> list[list[tuple[object, ...]]]:
    db = sqlite3.connect(path)
    try:
        return [db.execute(question).fetchall() for question in KEPT]
    finally:
        db.close()


def make_old(path: Path) -> None:
    """Takes away what version 1 did not have."""
    db = sqlite3.connect(path)
    db.execute("DELETE FROM tally WHERE measure = 'task-times'")
    db.execute("ALTER TABLE task DROP COLUMN finished")
    db.execute("ALTER TABLE replica DROP COLUMN first_work")
    db.execute("ALTER TABLE replica DROP COLUMN last_work")
    db.execute("ALTER TABLE replica DROP COLUMN save_times")
    db.execute("DROP TABLE task_count")
    db.execute("DROP INDEX finding_list")
    db.execute("CREATE INDEX finding_list ON finding (at, run, severity, rule)")
    db.execute("PRAGMA user_version = 1")
    db.commit()
    db.close()


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture
def path(tmp_path: Path, store: Store, cluster: Cluster) -> Path:
    cluster.overwritten()
    cluster.completed("fine")
    cluster.heartbeats()
    cluster.commit(store)
    store.close()
    return tmp_path / "facts.db"


def test_an_old_store_gets_the_figures_it_would_have_had(path: Path) -> None:
    before = figures(path)
    assert any(row[1] == "task-times" for row in before[0])
    make_old(path)
    open_store(f"sqlite:///{path}").close()
    assert figures(path) == before


def test_it_goes_on_from_there(path: Path, cluster: Cluster, reopen: Callable[[], Store]) -> None:
    make_old(path)
    cluster.completed("later")
    cluster.commit(reopen())
    assert len(figures(path)[1]) == 3


def test_a_migration_that_fails_leaves_the_store_as_it_is(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_old(path)

    def breaks(db: sqlite3.Connection) -> None:
        db.execute("ALTER TABLE task ADD COLUMN finished INTEGER")
        raise sqlite3.OperationalError("disk is full")

    monkeypatch.setattr(schema, "_STEPS", {1: breaks})
    with pytest.raises(StoreError, match="disk is full"):
        open_store(f"sqlite:///{path}")
    monkeypatch.undo()
    open_store(f"sqlite:///{path}").close()
