"""A history file becomes a store of its own, with what `check` says of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from a2a_fencing.checker import check
from a2a_fencing_dashboard.exports.excerpt import of_store, of_task
from a2a_fencing_dashboard.exports.formats import FORMATS
from a2a_fencing_dashboard.histories import HistoryError, read_history
from a2a_fencing_dashboard.histories.opening import open_history
from a2a_fencing_dashboard.store import open_store
from a2a_fencing_dashboard.store.protocol import Span, Store, Window
from support.reports import Cluster

HISTORIES = sorted((Path(__file__).parents[2] / "fixtures" / "histories").glob("*.jsonl"))


@pytest.fixture
def cluster() -> Cluster:
    made = Cluster()
    made.heartbeats()
    made.overwritten("t1")
    made.completed("t2")
    made.spans.append(Span("0" * 31 + "1", "a" * 16, None, "INSERT", 5, 9, "api", False, '{"rows":2}'))
    made.heartbeats()
    return made


@pytest.fixture
def live(tmp_path: Path, cluster: Cluster) -> Store:
    store = open_store(f"sqlite:///{tmp_path / 'live.sqlite'}")
    cluster.commit(store)
    return store


def findings(store: Store) -> set[tuple[str, str, tuple[str, ...]]]:
    rows, _ = store.findings(Window(), limit=1_000)
    return {(row.finding.rule, row.finding.certainty, row.finding.witness) for row in rows}


@pytest.mark.parametrize("path", HISTORIES, ids=lambda path: path.stem)
def test_it_shows_what_check_says(path: Path) -> None:
    opened = open_history(path, path.name)
    store = open_store(opened.url)
    report = check(read_history(path))
    assert findings(store) == {(f.rule, f.certainty, f.witness) for f in report.findings}
    assert store.gaps() == [type(gap)(gap.replica, gap.first, gap.last) for gap in report.gaps]
    store.close()
    opened.close()


@pytest.mark.parametrize("path", HISTORIES, ids=lambda path: path.stem)
def test_findings_have_the_time_of_their_last_fact_and_come_newest_first(path: Path) -> None:
    times = {fact.id: fact.time_unix_nano for fact in read_history(path)}
    opened = open_history(path, path.name)
    store = open_store(opened.url)
    rows, _ = store.findings(Window(), limit=1_000)
    store.close()
    opened.close()
    happened = [row.at_unix_nano for row in rows]
    assert happened == [max(times[fact] for fact in row.finding.witness) for row in rows]
    assert happened == sorted(happened, reverse=True)


def test_what_was_exported_is_the_same_store(live: Store, tmp_path: Path) -> None:
    path = tmp_path / "all.jsonl"
    path.write_bytes(FORMATS["otlp"].write(of_store(live, None)))
    opened = open_history(path, "all")
    store = open_store(opened.url)
    assert findings(store) == findings(live)
    assert {fact.id: fact for fact in store.facts()} == {fact.id: fact for fact in live.facts()}
    assert store.run_durations("load-42") == live.run_durations("load-42")
    store.close()
    opened.close()


def test_an_exported_task_is_the_same_task(live: Store, cluster: Cluster, tmp_path: Path) -> None:
    path = tmp_path / "task.jsonl"
    for key in {fact.task for fact in cluster.facts if fact.task is not None}:
        path.write_bytes(FORMATS["otlp"].write(of_task(live, key, 1_000)))
        opened = open_history(path, "task")
        store = open_store(opened.url)
        assert store.task(key) == live.task(key)
        assert store.facts_of(key) == live.facts_of(key)
        assert [row.finding for row in store.findings_of(key)] == [
            row.finding for row in live.findings_of(key)
        ]
        traces = {fact.trace_id for fact in store.facts_of(key) if fact.trace_id}
        assert store.spans_of(traces) == live.spans_of(traces)
        assert store.gaps() == []
        store.close()
        opened.close()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"dear diary", "expected OTLP JSON lines, Jaeger's JSON download or a dashboard store"),
        (b"", "no facts of a2a-fencing here"),
        (b"\x00\xff\xfe" * 20, "expected OTLP"),
        (b'{"resourceLogs": []}', "no facts of a2a-fencing here"),
        (b'{"resourceLogs": 7}', "my file, line 1"),
        (b"SQLite format 3\x00" + b"\x01" * 200, ""),
    ],
)
def test_what_is_no_history_is_said_in_one_line(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "uploaded"
    path.write_bytes(content)
    with pytest.raises(HistoryError) as caught:
        open_history(path, "my file")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert str(tmp_path) not in str(caught.value)


def test_a_file_that_is_too_large_says_what_else_can_be_done(live: Store, tmp_path: Path) -> None:
    path = tmp_path / "all.jsonl"
    path.write_bytes(FORMATS["otlp"].write(of_store(live, None)))
    with pytest.raises(HistoryError, match="more than 5 facts; export a run or a task"):
        open_history(path, "all", most=5)


def test_closing_leaves_nothing_behind(live: Store, tmp_path: Path) -> None:
    path = tmp_path / "all.jsonl"
    path.write_bytes(FORMATS["otlp"].write(of_store(live, None)))
    opened = open_history(path, "all")
    stored = Path(opened.url.removeprefix("sqlite:///"))
    assert stored.exists()
    opened.close()
    assert not stored.parent.exists()
    assert path.exists()
