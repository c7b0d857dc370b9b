from __future__ import annotations

import pytest

from a2a_fencing import conventions as c
from a2a_fencing_dashboard.ui import words
from support.reports import replica_row

SECOND = 1_000_000_000


def test_every_rule_and_every_reason_has_words():
    assert words.RULE_MEANINGS.keys() == set(c.RULES)
    assert words.REASON_MEANINGS.keys() == {
        *c.CONFLICT_REASONS,
        *c.DROP_REASONS,
        *c.DISPATCH_REASONS,
    }


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("plain", "plain"),
        ("a\nb\tc\rd", "a b c d"),
        ("\u202egnp.exe", "\ufffdgnp.exe"),
        ("a\u200bb\x00c\x1b[31m", "a\ufffdb\ufffdc\ufffd[31m"),
        ("\ud800", "\ufffd"),
        ("äöü 漢字 😀", "äöü 漢字 😀"),
        ("<b>$x$</b>", "<b>$x$</b>"),
    ],
)
def test_text_from_outside_is_made_visible(text, seen):
    assert words.shown(text) == seen


def test_long_text_keeps_both_ends():
    seen = words.shown("x" * 500 + "end", 20)
    assert len(seen) == 20
    assert seen.startswith("xxx")
    assert seen.endswith("end")
    assert "…" in seen


def test_short_ids_keep_what_people_compare():
    assert words.short_id("7f3c9a2e-4b1d-4e1a-9a57-5d2f6b0c01e1") == "7f3c9a2e…01e1"
    assert words.short_id("task-1") == "task-1"


@pytest.mark.parametrize(
    ("ns", "seen"),
    [
        (0, "0"),
        (840_000, "840 µs"),
        (1_200_000, "1.2 ms"),
        (38_000_000, "38 ms"),
        (4_200_000_000, "4.2 s"),
        (42 * SECOND, "42 s"),
        (180 * SECOND, "3 min"),
        (7_200 * SECOND, "2 h"),
        (4 * 86_400 * SECOND, "4 days"),
        (-41_000_000, "-41 ms"),
    ],
)
def test_durations(ns, seen):
    assert words.duration(ns) == seen


@pytest.mark.parametrize(
    ("seconds", "seen"),
    [(0, "just now"), (4, "4 s ago"), (59, "59 s ago"), (180, "3 min ago"), (-5, "just now")],
)
def test_ago(seconds, seen):
    assert words.ago(0, seconds * SECOND) == seen


def test_times_are_told_in_the_zone_of_the_browser():
    noon = 1_700_049_600 * SECOND
    assert words.clock(noon, None) == "12:00:00"
    assert words.clock(noon, "Europe/Berlin") == "13:00:00"
    assert words.clock(noon, "No/Such_Zone") == "12:00:00"
    assert words.clock(noon, "../../etc/passwd") == "12:00:00"


def test_a_time_of_another_day_says_which():
    noon = 1_700_049_600 * SECOND
    assert words.when(noon, noon + 60 * SECOND, None) == "12:00:00"
    assert words.when(noon, noon + 86_400 * SECOND, None) == "2023-11-15 12:00:00"


def test_counts():
    assert words.count(1, "task") == "1 task"
    assert words.count(12_481, "fact") == "12,481 facts"
    assert words.count(3) == "3"


def test_replicas_are_called_by_name_unless_names_repeat():
    rows = [replica_row("9b1e-1", "api"), replica_row("22c7-2", "api"), replica_row("e0f4-3", "worker")]
    names = words.replica_names(rows)
    assert names == {"9b1e-1": "api 9b1e", "22c7-2": "api 22c7", "e0f4-3": "worker"}


def test_an_earlier_run_does_not_rename_the_replicas_of_this_one():
    rows = [replica_row("9b1e-1", "api", run="one"), replica_row("22c7-2", "api", run="two")]
    assert set(words.replica_names(rows).values()) == {"api"}
    assert set(words.replica_names(rows, across_runs=True).values()) == {"api 9b1e", "api 22c7"}


def test_an_unknown_replica_is_called_by_its_id():
    assert words.replica_name({}, "22c7a6d1-0000-4000-8000-000000000002") == "22c7a6d1…0002"


def test_explanations_name_replicas():
    names = {"22c7a6d1-0000-4000-8000-000000000002": "api-1", "short": "api-2"}
    assert words.named("CANCELED (v3, 22c7a6d1) in short", names) == "CANCELED (v3, api-1) in short"


def test_versions_and_states():
    assert words.version(3) == "v3"
    assert words.version("etag-7") == "vetag-7"
    assert words.version(None) == "unversioned"
    assert words.state(None) == "no state"


@pytest.mark.parametrize(
    ("ns", "seen"),
    [
        (0, "0"),
        (400_000, "0.4 ms"),
        (12_300_000, "12 ms"),
        (1_083_000_000, "1,083 ms"),
        (1_084_000_000, "1,084 ms"),
        (12_350_000_000, "12.35 s"),
    ],
)
def test_elapsed_time_tells_neighbours_apart(ns, seen):
    assert words.elapsed(ns) == seen


def test_the_gravest_rule_comes_first():
    rules = ["new-rule", c.CANCEL_INEFFECTIVE, c.TERMINAL_OVERWRITTEN]
    assert words.gravest_first(rules) == [c.TERMINAL_OVERWRITTEN, c.CANCEL_INEFFECTIVE, "new-rule"]


def test_a_replica_that_has_not_told_its_name_is_called_by_a_short_id():
    instance = "0a7ee041-bf3b-4fa1-b479-41e65b896977"
    assert words.replica_names([replica_row(instance, instance)])[instance] == "0a7ee041…6977"
