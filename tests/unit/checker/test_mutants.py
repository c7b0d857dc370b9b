"""The conditions that `tests/mutate_checker.py` removes are still there to be removed."""

from __future__ import annotations

import runpy
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "mutate_checker.py"


def test_each_mutant_finds_its_condition_once() -> None:
    script = runpy.run_path(str(SCRIPT))
    found = {
        mutant.name: (script["ROOT"] / script["CHECKER"] / mutant.file).read_text().count(mutant.before)
        for mutant in script["MUTANTS"]
    }
    assert {name: times for name, times in found.items() if times != 1} == {}
