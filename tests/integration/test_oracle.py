"""Hooks and checker against database triggers that they cannot influence, on a cluster under chaos."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.databases import Database
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
