"""``a2a-fencing export``."""

from __future__ import annotations

from pathlib import Path

import pytest

from a2a_fencing.checker import check
from a2a_fencing_dashboard.cli import main
from a2a_fencing_dashboard.histories import read_history
from a2a_fencing_dashboard.store import open_store
from support.reports import Cluster


@pytest.fixture
def cluster() -> Cluster:
    made = Cluster()
    made.heartbeats()
    made.overwritten("t1")
    made.completed("t2", owner="alice")
    made.completed("t2", owner="bob")
    made.heartbeats()
    return made


@pytest.fixture
def path(tmp_path: Path, cluster: Cluster) -> str:
    store = open_store(f"sqlite:///{tmp_path / 'facts.sqlite'}")
    cluster.commit(store)
    store.close()
    return str(tmp_path / "facts.sqlite")


@pytest.fixture
def output(tmp_path: Path) -> Path:
    return tmp_path / "exported"


@pytest.mark.parametrize("part", [[], ["--run", "load-42"]])
def test_everything_comes_back_with_its_findings(
    path: str, output: Path, cluster: Cluster, part: list[str]
) -> None:
    assert main(["export", path, *part, "--output", str(output)]) == 0
    assert check(read_history(output)) == check(cluster.facts)


def test_one_task_comes_back_with_its_findings(path: str, output: Path, cluster: Cluster) -> None:
    assert main(["export", path, "--task", "t1", "--output", str(output)]) == 0
    assert check(read_history(output)).findings == check(cluster.facts).findings


@pytest.mark.parametrize(
    ("form", "begins"), [("html", b"<!DOCTYPE html>"), ("csv", b"id,time"), ("parquet", b"PAR1")]
)
def test_there_are_formats_for_people_and_tools(
    path: str, output: Path, form: str, begins: bytes
) -> None:
    assert main(["export", path, "--format", form, "--output", str(output)]) == 0
    assert output.read_bytes()[: len(begins)].lower() == begins.lower()


def test_it_can_be_piped(path: str, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert main(["export", path, "--task", "t1", "--output", "-"]) == 0
    assert capfdbinary.readouterr().out.startswith(b'{"resourceLogs"')


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--run", "never"], "there is no run 'never'"),
        (["--task", "t9"], "there is no task 't9'"),
        (["--task", "t"], "there is no task 't' in this store; did you mean 't2' or 't1'?"),
        (["--task", "t2"], "add --owner"),
        (["--task", "t1", "--run", "load-42"], "exclude each other"),
    ],
)
def test_a_wrong_choice_is_one_line_and_writes_nothing(
    path: str, output: Path, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", path, *arguments, "--output", str(output)]) == 2
    err = capsys.readouterr().err
    assert said in err
    assert err.count("\n") == 1
    assert not output.exists()


def test_what_is_no_store_is_said(
    tmp_path: Path, output: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "notes").write_text("dear diary")
    assert main(["export", str(tmp_path / "notes"), "--output", str(output)]) == 2
    assert "not a database" in capsys.readouterr().err


def test_where_it_cannot_be_written_is_said(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", path, "--output", "/nowhere/at/all"]) == 2
    assert "/nowhere/at/all: No such file" in capsys.readouterr().err
