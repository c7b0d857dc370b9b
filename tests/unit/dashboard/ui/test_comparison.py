"""What changed from one run to another."""

from __future__ import annotations

from dataclasses import replace

import pytest

from a2a_fencing import conventions as c
from a2a_fencing_dashboard.store.durations import Durations, bucket
from a2a_fencing_dashboard.store.protocol import Overview
from a2a_fencing_dashboard.store.runs import RunDurations, RunRow
from a2a_fencing_dashboard.ui.comparison import BETTER, WORSE, Line, RunFigures, compare, guard
from a2a_fencing_dashboard.ui.verdict import Judgement

S = 1_000_000_000
ROW = RunRow("a", 3, 0, S, S, 11 * S, 900, 0, 200, 20, c.VIOLATED)
OVERVIEW = Overview(
    verdict=c.VIOLATED,
    facts=900,
    missing=0,
    tasks=200,
    terminal_tasks=199,
    writes=1_000,
    conflicts={c.STALE_BASE: 40},
    terminal_rejections=0,
    drops={c.STALE_EXECUTOR: 30},
    dispatches=0,
    violations={c.TERMINAL_OVERWRITTEN: 20},
    infos={},
    violated_tasks=20,
    executing=0,
    newest=None,
)
DURATIONS = RunDurations(Durations({bucket(5_000_000): 100}), Durations())
FIRST = RunFigures(ROW, OVERVIEW, DURATIONS, Judgement(c.VIOLATED, "", (), ""))


def told(second: RunFigures) -> dict[tuple[str, str], Line]:
    return {(line.about, line.name): line for line in compare(FIRST, second)}


def test_a_run_does_not_differ_from_itself() -> None:
    for line in compare(FIRST, FIRST):
        assert (line.change, line.judgement, line.first) == ("", "", line.second)


def test_fewer_violations_are_better_and_more_are_worse() -> None:
    fewer = replace(FIRST, overview=replace(OVERVIEW, violations={}, violated_tasks=0))
    line = told(fewer)["violations", c.TERMINAL_OVERWRITTEN]
    assert line == Line(
        "violations",
        c.TERMINAL_OVERWRITTEN,
        "20",
        "0",
        "-20 (-100%)",
        BETTER,
        {"rule": c.TERMINAL_OVERWRITTEN},
    )
    more = replace(FIRST, overview=replace(OVERVIEW, violations={c.ABANDONED: 1}))
    assert told(more)["violations", c.ABANDONED].judgement == WORSE
    assert told(more)["violations", c.ABANDONED].change == "+1"


def test_a_fence_that_holds_more_often_is_neither() -> None:
    more = replace(FIRST, overview=replace(OVERVIEW, conflicts={c.STALE_BASE: 80}))
    line = told(more)["fence held", "stale-base conflicts"]
    assert (line.change, line.judgement) == ("+40 (+100%)", "")


def test_rates_are_over_the_time_that_was_worked() -> None:
    lines = told(FIRST)
    assert lines["load", "writes/s"].first == "100"
    assert lines["load", "tasks/s"].first == "20.0"
    assert lines["per 100 tasks", "conflicts"].first == "20.0"


@pytest.mark.parametrize(
    ("median_ns", "judgement"), [(5_200_000, ""), (9_000_000, WORSE), (2_000_000, BETTER)]
)
def test_only_a_marked_change_of_duration_is_judged(median_ns: int, judgement: str) -> None:
    second = replace(FIRST, durations=replace(DURATIONS, saves=Durations({bucket(median_ns): 9})))
    assert told(second)["durations", "save, median"].judgement == judgement


def test_what_was_not_measured_is_none() -> None:
    empty = replace(FIRST, row=replace(ROW, tasks=0, first_unix_nano=None, last_unix_nano=None))
    lines = told(empty)
    for key in (("load", "writes/s"), ("per 100 tasks", "violated tasks")):
        assert (lines[key].second, lines[key].change) == ("none", "")
    assert lines["durations", "task, p99"].first == "none"


@pytest.mark.parametrize(
    ("guarded", "words"), [(0, "guard off"), (3, "guard on"), (2, "guard on 2 of 3 replicas")]
)
def test_the_guard_is_on_off_or_mixed(guarded: int, words: str) -> None:
    assert guard(replace(ROW, guarded=guarded)) == words
