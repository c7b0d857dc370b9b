from __future__ import annotations

import pytest

from a2a_fencing import conventions as c
from a2a_fencing.facts import TaskKey
from a2a_fencing_dashboard.store.protocol import Span, TaskRow
from a2a_fencing_dashboard.ui import frames
from a2a_fencing_dashboard.ui.charts.schedule import schedule
from support.reports import replica_row

SECOND = 1_000_000_000
NOW = 1_700_000_000 * SECOND

ROW = TaskRow(
    key=TaskKey("tasks", "alice", "t-1"),
    context_id="ctx",
    run="load-42",
    verdict=c.VIOLATED,
    state=c.COMPLETED,
    version=4,
    replicas=("r1", "r2"),
    facts=11,
    writes=5,
    conflicts=1,
    rejections=0,
    drops=1,
    dispatches=0,
    rules=(c.ANSWER_CONTRADICTED, c.TERMINAL_OVERWRITTEN),
    first_unix_nano=NOW,
    last_unix_nano=NOW,
)


def test_a_task_is_one_row():
    table = frames.tasks(
        [ROW], {"r1": "api-0"}, "Europe/Berlin", lambda key: f"/task?task={key.task_id}"
    )
    (row,) = table.to_dict("records")
    assert row["verdict"] == "✖ Violated"
    assert row["task"] == "/task?task=t-1"
    assert row["state"] == "■ COMPLETED"
    assert row["version"] == "v4"
    assert row["broken rules"] == "terminal-overwritten + 1 more"
    assert (row["conflicts"], row["rejections"]) == ("1", "")
    assert row["replicas"] == "api-0, r2"
    assert str(row["last change"]) == "2023-11-14 23:13:20"


def test_a_silent_replica_and_its_work_are_in_doubt():
    stopped = replica_row("r3", "api-2", last_seen=NOW - 60 * SECOND)
    alive = replica_row("r1", "api-0", last_seen=NOW, executing=3, skew=-3_000_000)
    silent = replica_row("r2", "api-1", last_seen=NOW - 60 * SECOND, executing=8, missing=2)
    table = frames.replicas([alive, silent, stopped], {"r1": "api-0", "r2": "api-1"}, NOW, None)
    assert list(table["alive"]) == ["✓ yes", "✖ SILENT since 22:12:20", "silent since 22:12:20"]
    assert list(table["executing"]) == ["3", "8 tasks in doubt", "0"]
    assert list(table["missing"]) == [0, 2, 0]
    assert list(table["clock"]) == ["-3.0 ms", "", ""]


def test_facts_are_listed_in_the_order_in_which_they_happened(cluster):
    cluster.overwritten()
    ordered = schedule(cluster.facts)
    offence = next(fact.id for fact in ordered.facts if fact.version == 4)
    rows = [
        (n + 1, fact, time - ordered.times[0])
        for n, (fact, time) in enumerate(zip(ordered.facts, ordered.times, strict=True))
    ]
    table = frames.facts(rows, {}, {offence: c.TERMINAL_OVERWRITTEN}, lambda trace: f"/trace/{trace}")
    assert list(table["#"]) == list(range(1, 12))
    row = table[table["fact id"] == offence].to_dict("records")[0]
    assert row["base → version"] == "v3 → v4"
    assert row["broken rule"] == "✖ terminal-overwritten"
    assert row["after"] == "189 ms"
    assert row["trace"].endswith("0001")
    assert list(table["broken rule"]).count("") == 10


def span(span_id, parent, start, name="save"):
    return Span("t" * 32, span_id, parent, name, start, start + 2_000_000, "api-0", False, "{}")


def test_spans_stand_under_their_parents():
    rows = [
        span("c", "b", 30, "UPDATE tasks"),
        span("a", "elsewhere", 10, "execute"),
        span("b", "a", 20),
        span("d", None, 5, "root"),
    ]
    table = frames.spans(rows)
    assert list(table["span"]) == ["root", "execute", "    save", "        UPDATE tasks"]
    assert set(table["took"]) == {"2.0 ms"}


def test_spans_that_name_each_other_as_parents_are_listed_once():
    table = frames.spans(
        [span("a", "b", 1, "one"), span("b", "a", 2, "two"), span("r", None, 3, "root")]
    )
    assert [name.strip() for name in table["span"]] == ["root", "one", "two"]


@pytest.mark.parametrize(("cell", "style"), [("✖ Violated", "color: #d6304a"), ("✓ Fine", ""), ("", "")])
def test_only_what_matters_is_coloured(cell, style):
    assert frames._cell_style(cell) == style
