"""The named scenarios, each with the figures of the design, on every database; and their command."""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from a2a_fencing_dashboard import cli
from a2a_fencing_dashboard.scenarios import SCENARIOS, Figures, Scenario
from support.databases import Database

FIGURES = {
    "normal-control": Figures(
        attempts=1, accepted=1, conflicts=0, stored="COMPLETED", streamed="COMPLETED"
    ),
    "terminal-task-only": Figures(
        attempts=1, accepted=1, conflicts=1, stored="FAILED", streamed="FAILED"
    ),
    "terminal-with-resource-fence": Figures(
        attempts=1, accepted=0, conflicts=1, stored="FAILED", streamed="FAILED"
    ),
    "remote-cancel-stale-burst": Figures(
        conflicts=1,
        terminal_rejected=0,
        dropped=1,
        overwritten=1,
        stored="COMPLETED",
        streamed="CANCELED",
    ),
    "remote-cancel-guard-store": Figures(
        conflicts=1,
        terminal_rejected=1,
        dropped=2,
        overwritten=0,
        stored="CANCELED",
        streamed="CANCELED",
    ),
    "remote-cancel-guard-consumer": Figures(
        conflicts=1,
        terminal_rejected=0,
        dropped=2,
        overwritten=0,
        stored="CANCELED",
        streamed="CANCELED",
    ),
    "remote-cancel-guard-both": Figures(
        conflicts=1,
        terminal_rejected=0,
        dropped=2,
        overwritten=0,
        stored="CANCELED",
        streamed="CANCELED",
    ),
    "accepted-then-killed": Figures(
        attempts=1,
        accepted=1,
        conflicts=0,
        evidence="unknown",
        stored="FAILED",
        streamed="FAILED",
    ),
}


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_shows_the_figures_of_the_design(db: Database, scenario: Scenario) -> None:
    assert scenario.expected == FIGURES[scenario.name]
    assert asyncio.run(scenario.play(db.dsn)) == scenario.expected
    # A database that was lent is left as it was.
    for table in ("tasks", "task_versions", "task_events"):
        assert asyncio.run(db.run(f"SELECT count(*) FROM {table}"))[0][0] == 0


def test_the_command_leaves_logging_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    async def play(dsn: str) -> Figures:
        seen.append([logging.getLogger(name).level for name in ("a2a", "a2a_fencing")])
        return Figures()

    only = Scenario(name="only", story="", expected=Figures(), play=play)
    monkeypatch.setattr("a2a_fencing_dashboard.scenarios.SCENARIOS", (only,))
    before = [logging.getLogger(name).level for name in ("a2a", "a2a_fencing")]
    assert cli.main(["scenario"]) == 0
    assert seen == [[logging.CRITICAL] * 2]
    assert [logging.getLogger(name).level for name in ("a2a", "a2a_fencing")] == before


def test_every_scenario_of_the_design_is_there() -> None:
    assert [scenario.name for scenario in SCENARIOS] == list(FIGURES)


def test_the_command_prints_the_table_and_writes_a_property_per_figure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = tmp_path / "junit.xml"
    code = cli.main(
        [
            "scenario",
            "normal-control",
            "--dsn",
            f"sqlite+aiosqlite:///{tmp_path}/t.db",
            "--junit",
            str(report),
        ]
    )
    assert code == 0
    heading, row, _, verdict = capsys.readouterr().out.splitlines()
    assert heading.split()[:4] == ["scenario", "attempts", "accepted", "conflicts"]
    assert row.split()[:4] == ["normal-control", "1", "1", "0"]
    assert verdict == "every figure is as expected"
    suite = ElementTree.parse(report).getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("1", "0")
    properties = {p.get("name"): p.get("value") for p in suite.iter("property")}
    assert properties == {
        "attempts": "1",
        "accepted": "1",
        "conflicts": "0",
        "stored": "COMPLETED",
        "streamed": "COMPLETED",
    }


def test_a_figure_that_differs_is_shown_beside_what_was_expected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def play(dsn: str) -> Figures:
        return Figures(attempts=2, stored="COMPLETED")

    odd = Scenario(name="odd", story="", expected=Figures(attempts=1, stored="COMPLETED"), play=play)
    monkeypatch.setattr("a2a_fencing_dashboard.scenarios.SCENARIOS", (odd,))
    report = tmp_path / "junit.xml"
    assert cli.main(["scenario", "--junit", str(report)]) == 1
    out = capsys.readouterr().out
    assert "2 (not 1)" in out
    assert "not as expected: 1 of 1" in out
    failure = ElementTree.parse(report).getroot().find("testcase/failure")
    assert failure is not None
    assert failure.get("message") == "attempts: expected 1, observed 2"


def test_one_that_breaks_off_counts_as_a_difference_and_the_others_are_played(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def breaks(dsn: str) -> Figures:
        raise TimeoutError("nothing came")

    async def play(dsn: str) -> Figures:
        return Figures(attempts=1)

    scenarios = tuple(
        Scenario(name=name, story="", expected=Figures(attempts=1), play=how)
        for name, how in (("first", breaks), ("second", play))
    )
    monkeypatch.setattr("a2a_fencing_dashboard.scenarios.SCENARIOS", scenarios)
    assert cli.main(["scenario", "--json"]) == 1
    first, second = json.loads(capsys.readouterr().out)
    assert (first["ok"], first["error"]) == (False, "TimeoutError: nothing came")
    assert (second["ok"], second["observed"]) == (True, {"attempts": 1})


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["nope"], "there is no scenario 'nope'"),
        (["normal-control", "--dsn", "sqlite+aiosqlite:////nowhere/t.db"], "--dsn: unable to open"),
        (["normal-control", "--dsn", "nonsense"], "--dsn: "),
    ],
)
def test_bad_usage_is_one_line(
    arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["scenario", *arguments]) == 2
    err = capsys.readouterr().err
    assert complaint in err
    assert err.count("\n") == 1


def test_the_list_names_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["scenario", "--list"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(FIGURES)


_WITHOUT = """
import sys
from importlib.abc import MetaPathFinder

class Hidden(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {hidden!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Hidden())
from a2a_fencing_dashboard.cli import main
sys.exit(main({arguments!r}))
"""


def _without(hidden: set[str], *arguments: str) -> subprocess.CompletedProcess[str]:
    program = _WITHOUT.format(hidden=hidden, arguments=["scenario", *arguments])
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, timeout=100
    )


def test_it_needs_no_extra_but_the_sdks_own_databases() -> None:
    hidden = {"streamlit", "pandas", "plotly", "uvicorn", "starlette", "tenacity", "fastapi"}
    run = _without(hidden, "terminal-with-resource-fence")
    assert (run.returncode, run.stderr) == (0, "")


def test_without_databases_it_says_what_to_install() -> None:
    run = _without({"sqlalchemy"}, "normal-control")
    assert run.returncode == 2
    assert "pip install 'a2a-sdk[sql]" in run.stderr
    assert run.stderr.count("\n") == 1
