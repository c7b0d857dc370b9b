"""Writes the fixtures anew: ``python -m support.recording [NAME...]``, started in ``tests``."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from support.recording.cluster import TESTS, recording
from support.recording.scenarios import SCENARIOS, Scenario

HISTORIES = TESTS / "fixtures" / "histories"


def record(scenario: Scenario, *, fault: bool) -> list[str]:
    """Plays a scenario; the lines of its history."""
    with tempfile.TemporaryDirectory() as folder, recording(Path(folder)) as cluster:
        scenario.play(cluster, fault)
        return cluster.lines()


def main(names: list[str]) -> None:
    """Records these scenarios, or all."""
    HISTORIES.mkdir(parents=True, exist_ok=True)
    for name in names or SCENARIOS:
        for fault, suffix in ((True, ""), (False, "-without-fault")):
            path = HISTORIES / f"{name}{suffix}.jsonl"
            path.write_text("\n".join(record(SCENARIOS[name], fault=fault)) + "\n")
            print(path.name, f"{path.stat().st_size:,} bytes", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
