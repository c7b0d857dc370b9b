from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from a2a_fencing import conventions as c
from a2a_fencing.facts import Fact, TaskKey
from a2a_fencing_dashboard.demo.summary import table, violated_tasks
from a2a_fencing_dashboard.ingest import Ingest
from a2a_fencing_dashboard.store import Store, open_store
from a2a_fencing_dashboard.store.protocol import Window

API_0, API_1 = "11111111-aaaa", "22222222-bbbb"
TASK = TaskKey("tasks", "", "7f3c")
RUN = Window(run="demo")


def beat(replica: str, n: int, name: str, run: str) -> Fact:
    return Fact(
        id=f"{replica}:{n}",
        kind=c.HEARTBEAT,
        time_unix_nano=n,
        replica=replica,
        last=n,
        replica_name=name,
        run=run,
    )


def write(replica: str, n: int, state: str, base: int | None, version: int | None, **more: str) -> Fact:
    fields = {"outcome": c.ACCEPTED, **more}
    return Fact(
        id=f"{replica}:{n}",
        kind=c.WRITE,
        time_unix_nano=n,
        replica=replica,
        writer=f"{replica}/1",
        task=TASK,
        state=state,
        base_version=base,
        version=version,
        versioned=True,
        **fields,
    )


FACTS = [
    beat(API_0, 1, "api-0", "demo"),
    beat(API_1, 1, "api-1", "demo"),
    write(API_0, 2, c.SUBMITTED, None, 1),
    write(API_1, 2, c.CANCELED, 1, 2),
    write(API_0, 3, c.WORKING, 1, None, outcome=c.CONFLICT, reason=c.STALE_BASE),
    write(API_0, 4, c.CANCELED, 2, None, outcome=c.TERMINAL_REJECTED, reason=c.TERMINAL),
    write(API_0, 5, c.COMPLETED, 2, 3),
]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = open_store(f"sqlite:///{tmp_path / 'facts.sqlite'}")
    yield store
    store.close()


Took = Callable[[Sequence[Fact]], list[str]]


@pytest.fixture
def told(store: Store) -> Took:
    def told(facts: Sequence[Fact]) -> list[str]:
        Ingest(store).add(facts)
        return list(table(store, RUN))

    return told


def test_each_figure_has_its_line(told: Took) -> None:
    head, *figures, completeness = told(FACTS)
    assert head == "2 replicas, 1 task, 5 writes"
    assert [line.split("  ")[1] for line in figures] == [
        "conflicts",
        "terminal rejections",
        "dropped events",
        "terminal-overwritten",
    ]
    assert figures[0].split()[1:] == ["1", "(stale-base", "1)"]
    assert completeness == "history complete: 7 of 7 facts"


def test_that_nothing_was_violated_has_its_line_too(told: Took) -> None:
    figures = told(FACTS[:-1])[1:-1]
    assert figures[-1].split() == ["violations", "0"]


def test_an_example_calls_replicas_by_their_names(told: Took) -> None:
    line = next(line for line in told(FACTS) if line.strip().startswith("terminal-overwritten"))
    assert "7f3c: CANCELED (v2, api-1) was overwritten by COMPLETED (v3, api-0)" in line


def test_missing_facts_are_told(told: Took) -> None:
    assert told([fact for fact in FACTS if fact.id != f"{API_0}:3"])[-1] == (
        "history incomplete: 6 of 7 facts"
    )


def test_an_empty_store_is_not_a_complete_history(told: Took) -> None:
    assert told([])[-1] == "history incomplete: no facts have arrived"


def test_violated_tasks_are_those_of_this_run(store: Store) -> None:
    Ingest(store).add(FACTS)
    assert violated_tasks(store, RUN) == {TASK.task_id}
    assert violated_tasks(store, Window(run="another")) == set()
