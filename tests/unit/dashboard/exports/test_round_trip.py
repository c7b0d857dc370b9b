"""What was exported is read again: the same facts, the same findings."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner

from a2a_fencing.checker import check
from a2a_fencing.facts import Fact
from a2a_fencing_dashboard.cli.main import commands
from a2a_fencing_dashboard.exports.excerpt import Excerpt, file_name, of_run, of_store, of_task
from a2a_fencing_dashboard.exports.formats import FORMATS
from a2a_fencing_dashboard.exports.table import as_csv, table
from a2a_fencing_dashboard.histories import read_history
from a2a_fencing_dashboard.store import open_store
from a2a_fencing_dashboard.store.protocol import Span, Store
from support.reports import Cluster

HISTORIES = sorted((Path(__file__).parents[3] / "fixtures" / "histories").glob("*.jsonl"))
HOSTILE = '=HYPERLINK("http://evil")<script>\u202e\n\''


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(f"sqlite:///{tmp_path / 'facts.sqlite'}")
    yield opened
    opened.close()


@pytest.fixture
def cluster(store: Store) -> Cluster:
    made = Cluster()
    made.heartbeats()
    made.overwritten("t1")
    made.completed("t2")
    made.refusal("t3", owner=HOSTILE)
    made.heartbeats()
    made.spans.append(
        Span("0" * 31 + "1", "a" * 16, None, "INSERT", 5, 9, "api", True, '{"n": [1, 2.5]}')
    )
    made.commit(store)
    return made


def read_again(excerpt: Excerpt, tmp_path: Path) -> list[Fact]:
    path = tmp_path / "exported.jsonl"
    path.write_bytes(FORMATS["otlp"].write(excerpt))
    return list(read_history(path))


def by_id(facts: list[Fact] | tuple[Fact, ...]) -> dict[str, Fact]:
    return {fact.id: fact for fact in facts}


@pytest.mark.parametrize("path", HISTORIES, ids=lambda path: path.stem)
def test_every_kept_history_comes_back_exactly(path: Path, tmp_path: Path) -> None:
    facts = tuple(read_history(path))
    assert by_id(read_again(Excerpt("all", facts), tmp_path)) == by_id(facts)


def test_a_run_comes_back_with_its_findings(cluster: Cluster, store: Store, tmp_path: Path) -> None:
    excerpt = of_run(store, "load-42", None)
    assert excerpt.size == f"{len(cluster.facts)} facts"
    again = read_again(excerpt, tmp_path)
    assert by_id(again) == by_id(tuple(cluster.facts))
    assert check(again) == check(cluster.facts)


def test_a_task_comes_back_with_its_findings(cluster: Cluster, store: Store, tmp_path: Path) -> None:
    (violated,) = {finding.task for finding in check(cluster.facts).findings if finding.violates}
    excerpt = of_task(store, violated, 1_000)
    assert len(excerpt.spans) == 1
    again = check(read_again(excerpt, tmp_path))
    assert again.findings == tuple(
        finding for finding in check(cluster.facts).findings if finding.task == violated
    )
    assert again.complete


def test_what_is_missing_stays_missing_in_a_part(store: Store, tmp_path: Path) -> None:
    cluster = Cluster()
    cluster.heartbeats()
    task = cluster.completed("t1")
    lost = cluster.a.report("read", task=task.key, state="WORKING", version=2)
    other = cluster.completed("t2")
    cluster.heartbeats()
    cluster.commit(store, without=[lost])
    again = check(read_again(of_task(store, other.key, 1_000), tmp_path))
    assert [(gap.replica, gap.first, gap.last) for gap in again.gaps] == [(lost.replica, lost.n, lost.n)]


def test_a_task_that_is_cut_is_not_called_complete(
    cluster: Cluster, store: Store, tmp_path: Path
) -> None:
    key = next(fact.task for fact in cluster.facts if fact.task is not None)
    excerpt = of_task(store, key, 2)
    assert not excerpt.complete
    assert not check(read_again(excerpt, tmp_path)).complete


def test_the_command_line_judges_what_was_exported(
    cluster: Cluster, store: Store, tmp_path: Path
) -> None:
    path = tmp_path / "exported.jsonl"
    path.write_bytes(FORMATS["otlp"].write(of_store(store, None)))
    done = CliRunner().invoke(commands, ["check", str(path)], standalone_mode=False)
    assert done.return_value == 1
    assert "terminal-overwritten" in done.output
    assert f"history complete: {len(cluster.facts)} of {len(cluster.facts)} facts" in done.output


def test_tables_have_every_fact_and_field(cluster: Cluster, store: Store, tmp_path: Path) -> None:
    excerpt = of_store(store, None)
    for name, read in (("csv", pd.read_csv), ("parquet", pd.read_parquet)):
        path = tmp_path / f"facts.{name}"
        path.write_bytes(FORMATS[name].write(excerpt))
        rows = read(path)
        assert sorted(rows["id"]) == sorted(fact.id for fact in cluster.facts)
        written = rows[rows["id"] == cluster.facts[2].id].iloc[0]
        assert (written["state"], written["version"], written["task_id"]) == (
            "SUBMITTED",
            *("1", "t1"),
        ) or (name == "csv" and written["version"] == 1)


def test_a_cell_is_no_formula_to_a_spreadsheet(cluster: Cluster, store: Store) -> None:
    excerpt = of_store(store, None)
    assert f"\"'{HOSTILE[:5]}" in as_csv(excerpt.facts).decode()
    assert HOSTILE in set(table(excerpt.facts)["owner"].dropna())


def test_versions_of_any_kind_make_one_table() -> None:
    facts = [
        Fact(id=f"r:{n}", kind="write", time_unix_nano=n, replica="r", version=version)
        for n, version in enumerate((1, "etag", None), start=1)
    ]
    excerpt = Excerpt("all", tuple(facts))
    assert list(table(facts)["version"].fillna("-")) == ["1", "etag", "-"]
    assert FORMATS["parquet"].write(excerpt)
    assert FORMATS["parquet"].write(Excerpt("none", ()))


def test_a_part_says_of_how_much_it_is_one(cluster: Cluster, store: Store) -> None:
    excerpt = of_store(store, 3)
    assert not excerpt.complete
    assert excerpt.size == f"3 of {len(cluster.facts)} facts"


def test_a_report_tells_a_task_that_broke_no_rule_too(cluster: Cluster, store: Store) -> None:
    key = next(fact.task for fact in cluster.facts if fact.task and fact.task.task_id == "t2")
    html = FORMATS["html"].write(of_task(store, key, 1_000)).decode()
    assert "t2</code></h2>" in html
    assert "application/json" in html
    assert "no violation found in 1 task" in html


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("7f3c-01", "a2a-fencing-7f3c-01.csv"),
        ("../../etc/passwd", "a2a-fencing-etc-passwd.csv"),
        ("", "a2a-fencing-facts.csv"),
        ("\u202e\n", "a2a-fencing-facts.csv"),
        ("x" * 300, f"a2a-fencing-{'x' * 60}.csv"),
    ],
)
def test_a_file_name_is_one_on_every_system(name: str, expected: str) -> None:
    assert file_name(name, "csv") == expected
