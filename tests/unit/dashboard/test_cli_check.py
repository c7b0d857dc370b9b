from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from a2a_fencing import conventions as c
from a2a_fencing.facts import Fact, TaskKey
from a2a_fencing_dashboard.cli import main
from a2a_fencing_dashboard.store import open_store
from a2a_fencing_dashboard.store.protocol import Batch

TASK = TaskKey("tasks @ sqlite", "alice", "7f3c")
Save = Callable[[Sequence[Fact]], str]


def write(fact_id: str, state: str, base: int | None, version: int) -> Fact:
    replica = fact_id.partition(":")[0]
    return Fact(
        id=fact_id,
        kind=c.WRITE,
        time_unix_nano=version,
        replica=replica,
        writer=f"{replica}/1",
        task=TASK,
        state=state,
        base_version=base,
        version=version,
        outcome=c.ACCEPTED,
        versioned=True,
    )


def heartbeat(fact_id: str, name: str) -> Fact:
    replica, _, last = fact_id.partition(":")
    return Fact(
        id=fact_id,
        kind=c.HEARTBEAT,
        time_unix_nano=9,
        replica=replica,
        last=int(last),
        replica_name=name,
    )


FINISHED = [
    write("a:1", c.SUBMITTED, None, 1),
    write("a:2", c.WORKING, 1, 2),
    write("b:1", c.CANCELED, 2, 3),
    heartbeat("b:2", "api-1"),
    heartbeat("a:3", "api-0"),
]
OVERWRITTEN = [*FINISHED, write("a:4", c.COMPLETED, 3, 4)]


@pytest.fixture
def save(tmp_path: Path) -> Save:
    def save(facts: Sequence[Fact]) -> str:
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.sqlite"
        store = open_store(f"sqlite:///{path}")
        store.commit(Batch(facts=facts), now_unix_nano=0)
        store.close()
        return str(path)

    return save


def test_a_fine_history(save: Save, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", save(FINISHED)]) == 0
    assert capsys.readouterr().out == (
        "FINE: no violation found in 1 task; history complete: 5 of 5 facts\n"
    )


def test_a_violated_history_names_the_finding_and_its_witness(
    save: Save, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", save(OVERWRITTEN)]) == 1
    out = capsys.readouterr().out
    verdict, blank, task, *story = out.splitlines()
    assert verdict == "VIOLATED: 1 finding on 1 of 1 task; history complete: 6 of 6 facts"
    assert blank == ""
    assert task == "task 7f3c (owner alice, store tasks @ sqlite)"
    assert story == [
        "   1. api-1 wrote CANCELED on v2, and the store made it v3  [b:1]",
        "   2. api-0 wrote COMPLETED on v3, and the store made it v4  [a:4]",
        "",
        "  terminal-overwritten  critical, proven  (steps 1, 2)",
        "    CANCELED (v3, api-1) was overwritten by COMPLETED (v4, api-0) (proven)",
        "    Broken: a terminal state is final.",
    ]


def test_missing_facts_are_not_fine(save: Save, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", save([fact for fact in FINISHED if fact.id != "a:2"])]) == 3
    assert capsys.readouterr().out.splitlines()[:2] == [
        "UNKNOWN: no violation found in 1 task; history incomplete: 4 of 5 facts",
        "missing: fact 2 of api-0",
    ]


def test_a_violation_outweighs_missing_facts(save: Save) -> None:
    assert main(["check", save([*OVERWRITTEN, heartbeat("a:9", "api-0")])]) == 1


def test_files_are_judged_together(save: Save, capsys: pytest.CaptureFixture[str]) -> None:
    of_a = save([fact for fact in OVERWRITTEN if fact.replica == "a"])
    of_b = save([fact for fact in OVERWRITTEN if fact.replica == "b"])
    assert main(["check", of_a, of_b, of_a]) == 1
    assert "history complete: 6 of 6 facts" in capsys.readouterr().out


def test_nothing_to_judge_is_not_fine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "logs.jsonl"
    path.write_text('{"resourceLogs": []}\n')
    assert main(["check", str(path)]) == 3
    assert capsys.readouterr().out.startswith("UNKNOWN: no facts")


def test_text_from_outside_cannot_steer_the_terminal(
    save: Save, capsys: pytest.CaptureFixture[str]
) -> None:
    hostile = TaskKey("s", "\x1b]0;owned\x07", "\x1b[2Jgone")
    assert (
        main(["check", save([replace(fact, task=fact.task and hostile) for fact in OVERWRITTEN])]) == 1
    )
    out = capsys.readouterr().out
    assert "gone" in out
    assert "\x1b" not in out
    assert "\x07" not in out


@pytest.mark.parametrize("content", ["hello", '{"resourceLogs": [3]}', "SQLite format 3\0"])
def test_a_file_that_cannot_be_read(
    tmp_path: Path, content: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "history"
    path.write_text(content)
    assert main(["check", str(path)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("a2a-fencing check: ")
    assert str(path) in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("arguments", [[], ["absent.jsonl"], ["."]])
def test_wrong_paths(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", *arguments]) == 2
    complains_in_one_line(capsys)


def complains_in_one_line(capsys: pytest.CaptureFixture[str]) -> str:
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("a2a-fencing check: ")
    assert err.count("\n") == 1
    return err


# --- what is allowed

TABLE = '[tool.a2a-fencing]\nallow = [{rule = "terminal-overwritten", reason = "until March"}]\n'


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose pyproject.toml is written by the test, with the working directory below it."""
    below = tmp_path / "project" / "src"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    return below.parent / "pyproject.toml"


def test_a_rule_that_is_allowed_is_shown_and_does_not_count(
    save: Save, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", save(OVERWRITTEN), "--allow", "terminal-overwritten"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "FINE: no violation found in 1 task, 1 allowed; history complete: 6 of 6 facts",
        "",
        "allowed: terminal-overwritten on task 7f3c (owner alice, store tasks @ sqlite)",
        "  CANCELED (v3, api-1) was overwritten by COMPLETED (v4, api-0)",
        "  reason: --allow on the command line",
    ]


def test_other_rules_still_count(save: Save) -> None:
    arguments = ["--allow", "abandoned", "--allow", "version-fork"]
    assert main(["check", save(OVERWRITTEN), *arguments]) == 1


def test_the_allow_list_of_the_project(
    save: Save, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project.write_text(TABLE)
    assert main(["check", save(OVERWRITTEN)]) == 0
    assert "  reason: until March\n" in capsys.readouterr().out


def test_what_is_allowed_does_not_make_missing_facts_fine(save: Save, project: Path) -> None:
    project.write_text(TABLE)
    assert main(["check", save([*OVERWRITTEN, heartbeat("a:9", "api-0")])]) == 3


def test_an_allow_list_without_a_reason(
    save: Save, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project.write_text('[tool.a2a-fencing]\nallow = [{rule = "abandoned"}]\n')
    assert main(["check", save(FINISHED)]) == 2
    assert "allow[0] (abandoned) gives no reason" in complains_in_one_line(capsys)


def test_a_rule_that_does_not_exist(save: Save, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", save(FINISHED), "--allow", "forgotten"]) == 2
    assert "'forgotten'" in complains_in_one_line(capsys)


# --- other formats, other places


@pytest.mark.parametrize("form", ["json", "junit", "sarif"])
def test_the_exit_code_is_the_same_in_every_format(
    save: Save, form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", save(OVERWRITTEN), "--format", form]) == 1
    assert c.TERMINAL_OVERWRITTEN in capsys.readouterr().out
    assert main(["check", save(FINISHED), "--format", form]) == 0


def test_into_a_file(save: Save, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "report.json"
    assert main(["check", save(OVERWRITTEN), "--format", "json", "--output", str(target)]) == 1
    assert json.loads(target.read_text())["verdict"] == "violated"
    assert capsys.readouterr().out == (
        "VIOLATED: 1 finding on 1 of 1 task; history complete: 6 of 6 facts\n"
    )


@pytest.mark.parametrize("option", ["--output", "--html"])
def test_a_file_that_cannot_be_written(
    save: Save, tmp_path: Path, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", save(FINISHED), option, str(tmp_path / "absent" / "report")]) == 2
    _, err = capsys.readouterr()
    assert err.startswith(f"a2a-fencing check: {option}: ")
    assert err.count("\n") == 1


def test_a_format_that_does_not_exist(save: Save, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", save(FINISHED), "--format", "pdf"]) == 2
    assert "'pdf'" in complains_in_one_line(capsys)


# --- without the dashboard's libraries

BASE_INSTALL = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"jinja2", "pandas", "plotly", "starlette", "streamlit", "uvicorn"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
from a2a_fencing_dashboard.cli import main
sys.exit(main(sys.argv[1:]))
"""


def on_the_base_install(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", BASE_INSTALL, "check", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("form", ["text", "json", "junit", "sarif"])
def test_the_base_install_judges(save: Save, form: str) -> None:
    done = on_the_base_install(save(OVERWRITTEN), "--format", form)
    assert (done.returncode, done.stderr) == (1, "")


def test_the_base_install_says_what_a_report_with_timelines_needs(save: Save, tmp_path: Path) -> None:
    target = tmp_path / "report.html"
    done = on_the_base_install(save(OVERWRITTEN), "--html", str(target))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.endswith("pip install 'a2a-fencing[dashboard]'\n")
    assert done.stderr.count("\n") == 1
    assert not target.exists()


def test_a_report_with_timelines(save: Save, tmp_path: Path) -> None:
    target = tmp_path / "report.html"
    assert main(["check", save(OVERWRITTEN), "--html", str(target)]) == 1
    assert "CANCELED (v3, api-1) was overwritten by COMPLETED" in target.read_text()
