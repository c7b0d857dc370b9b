"""The recorder of the fixtures against today's SDK and today's exporter."""

from __future__ import annotations

from pathlib import Path

import pytest

from a2a_fencing.checker import check
from a2a_fencing_dashboard.histories import read_history
from support.recording.cluster import recording
from support.recording.scenarios import SCENARIOS, Scenario


@pytest.mark.parametrize("fault", [True, False], ids=["fault", "no fault"])
@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
def test_a_scenario_recorded_now_is_judged_like_the_fixture(
    scenario: Scenario, fault: bool, tmp_path: Path
) -> None:
    with recording(tmp_path) as cluster:
        scenario.play(cluster, fault)
        lines = cluster.lines()
    path = tmp_path / "history.jsonl"
    path.write_text("\n".join(lines))
    report = check(read_history(path))
    assert {finding.rule for finding in report.findings} == (scenario.rules if fault else set())
    assert report.complete
    assert report.verdict == ("violated" if fault else "fine")
