from __future__ import annotations

from dataclasses import replace

import pytest

from a2a_fencing import conventions as c
from a2a_fencing_dashboard.store.protocol import Overview
from a2a_fencing_dashboard.ui.verdict import judge
from support.reports import replica_row

SECOND = 1_000_000_000
NOW = 1_700_000_000 * SECOND
FINE = Overview(
    verdict=c.FINE,
    facts=100,
    missing=0,
    tasks=9,
    terminal_tasks=9,
    writes=27,
    conflicts={},
    terminal_rejections=0,
    drops={},
    dispatches=0,
    violations={},
    infos={},
    violated_tasks=0,
    executing=0,
    newest=None,
)
ALIVE = replica_row("r1", "api-0", last_seen=NOW, facts=100)


def verdict(overview, *replicas):
    return judge(overview, replicas, {"r1": "api-0", "r2": "api-1"}, NOW, None)


def test_fine_says_what_was_watched():
    told = verdict(FINE, ALIVE)
    assert (told.kind, told.headline) == (c.FINE, "No violation in 9 tasks.")
    assert told.completeness == "History complete: 100 of 100 facts."
    assert told.doubts == ()


def test_violated_names_the_gravest_rule_and_the_tasks():
    overview = replace(
        FINE,
        verdict=c.VIOLATED,
        violated_tasks=7,
        tasks=904,
        violations={c.ANSWER_CONTRADICTED: 7, c.TERMINAL_OVERWRITTEN: 7},
    )
    told = verdict(overview, ALIVE)
    assert told.kind == c.VIOLATED
    assert (
        told.headline
        == "7 of 904 tasks broke a rule; the gravest: a finished task was given another state."
    )


def test_a_rule_of_a_newer_checker_is_named_as_it_is():
    overview = replace(FINE, verdict=c.VIOLATED, violated_tasks=1, violations={"new-rule": 1})
    assert verdict(overview, ALIVE).headline == "1 of 9 tasks broke a rule; the gravest: new-rule."


def test_missing_facts_are_unknown_and_say_whose():
    overview = replace(FINE, verdict=c.UNKNOWN, missing=3)
    told = verdict(overview, replace(ALIVE, missing=3))
    assert told.kind == c.UNKNOWN
    assert told.doubts == ("3 facts of api-0 never arrived.",)
    assert told.completeness == "History incomplete: 100 of 103 facts."


def test_unknown_always_says_why():
    told = verdict(replace(FINE, verdict=c.UNKNOWN), ALIVE)
    assert told.kind == c.UNKNOWN
    assert told.doubts


def test_a_replica_that_fell_silent_at_work_is_never_fine():
    silent = replica_row("r2", "api-1", last_seen=NOW - 60 * SECOND, executing=8)
    told = verdict(FINE, ALIVE, silent)
    assert told.kind == c.UNKNOWN
    assert told.doubts == ("api-1 has been silent since 22:12:20; it was executing 8 tasks.",)


@pytest.mark.parametrize("seconds", [0, 5, 14])
def test_one_late_heartbeat_proves_nothing(seconds):
    late = replica_row("r2", "api-1", last_seen=NOW - seconds * SECOND, executing=8)
    assert verdict(FINE, ALIVE, late).kind == c.FINE


def test_a_replica_that_stopped_after_its_work_leaves_no_doubt():
    stopped = replica_row("r2", "api-1", last_seen=NOW - 3_600 * SECOND, executing=0)
    assert verdict(FINE, ALIVE, stopped).kind == c.FINE


def test_doubts_stay_when_something_is_violated():
    overview = replace(FINE, verdict=c.VIOLATED, violated_tasks=1, violations={c.VERSION_FORK: 1})
    assert verdict(overview, replace(ALIVE, missing=1)).doubts


def test_no_task_is_not_fine():
    told = verdict(replace(FINE, verdict=c.UNKNOWN, tasks=0, facts=0), ALIVE)
    assert (told.kind, told.headline) == (c.UNKNOWN, "No task was reported in this run and time range.")
