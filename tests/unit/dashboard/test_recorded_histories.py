"""Histories that the real SDK and the real exporter made: what went wrong is found, and nothing else."""

from __future__ import annotations

import json
import socket
import sys
import tempfile
from pathlib import Path

import pytest

from a2a_fencing.checker import check
from a2a_fencing_dashboard.cli import main
from a2a_fencing_dashboard.histories import read_history
from support.recording.cluster import TESTS
from support.recording.scenarios import SCENARIOS, Scenario

HISTORIES = TESTS / "fixtures" / "histories"
FILES = sorted(HISTORIES.glob("*.jsonl"))


def test_every_scenario_is_recorded_with_its_fault_and_without() -> None:
    names = {name for scenario in SCENARIOS for name in (scenario, f"{scenario}-without-fault")}
    assert {path.stem for path in FILES} == names


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
def test_a_fault_turns_red(scenario: Scenario, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--format", "json", str(HISTORIES / f"{scenario.name}.jsonl")]) == 1
    document = json.loads(capsys.readouterr().out)
    (case,) = document["cases"]
    assert {finding["rule"] for finding in case["findings"]} == scenario.rules
    assert len(case["findings"]) == len(scenario.rules)
    assert document["complete"]


@pytest.mark.parametrize("name", SCENARIOS)
def test_without_its_fault_it_turns_green(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(HISTORIES / f"{name}-without-fault.jsonl")]) == 0
    out = capsys.readouterr().out
    assert out.startswith("FINE: no violation found in 1 task; history complete: ")
    assert out.count("\n") == 1


def test_the_overwritten_cancel_is_told_in_full(capsys: pytest.CaptureFixture[str]) -> None:
    main(["check", str(HISTORIES / "remote_cancel.jsonl")])
    out = capsys.readouterr().out
    assert "CANCELED (v3, api-1) was overwritten by COMPLETED (v4, api-0) (proven)" in out


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_each_fact_came_as_log_event_and_some_as_span_event_and_counts_once(path: Path) -> None:
    facts = list(read_history(path))
    assert len({fact.id for fact in facts}) < len(facts)
    assert check(facts).complete


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_recording_does_not_say_where_it_was_made(path: Path) -> None:
    text = path.read_text()
    places = {sys.prefix, str(TESTS.parent), tempfile.gettempdir(), str(Path.home())}
    names = {socket.gethostname()}
    assert not [word for word in places | names if len(word) > 1 and word in text]
    for word in ('"/tmp', "/home/", "/root/", "/Users/"):
        assert word not in text
