"""Hooks and checker against database triggers that they cannot influence, on a cluster under chaos."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.databases import Database
from support.oracle import cancels
from support.oracle.load import CANCELS
from support.oracle.run import OracleSettings, Outcome, run
from support.oracle.table import lines, problems

SECONDS = 8.0
pytestmark = pytest.mark.timeout(300)


def chaos(database: Database, folder: Path, **options: Any) -> tuple[OracleSettings, Outcome]:
    """A short run, shown in full where its test fails."""
    settings = OracleSettings(dsn=database.dsn, folder=folder, seconds=SECONDS, **options)
    outcome = run(settings)
    print(*lines(outcome), sep="\n")
    return settings, outcome


def test_every_overwrite_is_found_and_none_is_claimed(db: Database, tmp_path: Path) -> None:
    settings, outcome = chaos(db, tmp_path)
    assert list(problems(settings, outcome)) == []
    assert outcome.comparison.overwritten.found > 0
    assert outcome.did["killed"] + outcome.did["stopped"] > 0


def test_nothing_is_overwritten_where_the_guard_is_on(db: Database, tmp_path: Path) -> None:
    settings, outcome = chaos(db, tmp_path, guard=True)
    assert list(problems(settings, outcome)) == []
    assert outcome.comparison.reported.accepted > 0


@pytest.mark.parametrize("guard", [True, False], ids=["guard", "no guard"])
def test_of_cancelled_tasks_the_log_holds_an_overwrite_only_without_the_guard(
    db: Database, tmp_path: Path, guard: bool
) -> None:
    """The short run of `benchmarks/oracle.py --cancels 10000`, with the same seed both times."""
    settings = OracleSettings(
        dsn=db.dsn,
        folder=tmp_path,
        seconds=120,
        cancels=60,
        guard=guard,
        clients=16,
        replicas=2,
        mix=CANCELS,
        ended_every_s=0,
    )
    found, _ = cancels.run(settings)
    print(*cancels.lines(found), sep="\n")
    assert list(cancels.problems(settings, found)) == []
