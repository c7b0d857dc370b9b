from __future__ import annotations

from pathlib import Path

import pytest

from a2a_fencing import allowlist
from a2a_fencing import conventions as c
from a2a_fencing.allowlist import Allowance, Allowed, AllowListError
from a2a_fencing.checker import Finding, Gap, Report
from a2a_fencing.facts import TaskKey

ONE, TWO = TaskKey("tasks @ sqlite", "alice", "one"), TaskKey("tasks @ sqlite", "bob", "two")
KNOWN = Allowance(c.TERMINAL_OVERWRITTEN, "fixed by the guard, due in March")


def finding(task: TaskKey = ONE, rule: str = c.TERMINAL_OVERWRITTEN, key: str = "v4") -> Finding:
    return Finding(rule, c.CRITICAL, c.PROVEN, task, ("a:1",), "it was overwritten", key)


def read(folder: Path, text: str) -> tuple[Allowance, ...]:
    path = folder / "pyproject.toml"
    path.write_text(text)
    return allowlist.read(path)


# --- reading


def test_entries_with_and_without_a_task(tmp_path: Path) -> None:
    allowances = read(
        tmp_path,
        """
        [tool.a2a-fencing]
        allow = [
            {rule = "terminal-overwritten", reason = "fixed by the guard, due in March"},
            {rule = "abandoned", reason = "killed on purpose", task = "7f3c"},
        ]
        """,
    )
    assert allowances == (KNOWN, Allowance(c.ABANDONED, "killed on purpose", "7f3c"))


@pytest.mark.parametrize("text", ["", "[tool.ruff]\n", "[tool.a2a-fencing]\n"])
def test_a_project_that_allows_nothing(tmp_path: Path, text: str) -> None:
    assert read(tmp_path, text) == ()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("allow = [", "Invalid"),
        ('[tool]\na2a-fencing = "x"', "[tool.a2a-fencing] is not a table"),
        ("tool = 1", "[tool.a2a-fencing] is not a table"),
        ("[tool.a2a-fencing]\nalow = []", "[tool.a2a-fencing] has no setting 'alow'"),
        ("[tool.a2a-fencing]\nallow = {}", "allow is not an array of tables"),
        ('[tool.a2a-fencing]\nallow = ["abandoned"]', "allow[0] is not a table"),
        (
            '[tool.a2a-fencing]\nallow = [{rule = "abandoned"}]',
            "allow[0] (abandoned) gives no reason",
        ),
        (
            '[tool.a2a-fencing]\nallow = [{rule = "abandoned", reason = " "}]',
            "allow[0] (abandoned) gives no reason",
        ),
        ('[tool.a2a-fencing]\nallow = [{reason = "x"}]', "allow[0] names no rule"),
        (
            '[tool.a2a-fencing]\nallow = [{rule = "forgotten", reason = "x"}]',
            "allow[0]: there is no rule 'forgotten'; there are terminal-overwritten, ",
        ),
        (
            '[tool.a2a-fencing]\nallow = [{rule = "abandoned", reason = "x", tsk = "1"}]',
            "allow[0] (abandoned) has no setting 'tsk'",
        ),
        (
            '[tool.a2a-fencing]\nallow = [{rule = "abandoned", reason = "x", task = 1}]',
            "allow[0] (abandoned): task is not text",
        ),
    ],
)
def test_what_cannot_be_understood_is_one_line_with_the_place(
    tmp_path: Path, text: str, complaint: str
) -> None:
    with pytest.raises(AllowListError) as caught:
        read(tmp_path, text)
    line = str(caught.value)
    assert line.startswith(f"{tmp_path / 'pyproject.toml'}: ")
    assert complaint in line
    assert "\n" not in line


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(AllowListError, match=r"absent\.toml: No such file"):
        allowlist.read(tmp_path / "absent.toml")


def test_a_file_that_is_not_text(tmp_path: Path) -> None:
    path = tmp_path / "pyproject.toml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(AllowListError, match=r"pyproject\.toml: "):
        allowlist.read(path)


def test_the_project_is_the_nearest_one_above(tmp_path: Path) -> None:
    inner = tmp_path / "project" / "src" / "deep"
    inner.mkdir(parents=True)
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "project" / "pyproject.toml").touch()
    assert allowlist.nearest(inner) == tmp_path / "project" / "pyproject.toml"


# --- applying


def test_what_is_allowed_no_longer_violates() -> None:
    report = Report((finding(),), verdicts={ONE: c.VIOLATED})
    remaining, allowed = allowlist.apply(report, [KNOWN])
    assert allowed == (Allowed(finding(), KNOWN.reason),)
    assert remaining.findings == ()
    assert remaining.verdicts == {ONE: c.FINE}
    assert remaining.verdict == c.FINE


def test_a_task_that_was_violated_may_still_be_in_doubt() -> None:
    report = Report(
        (finding(),),
        (Gap("a", 3, 4),),
        {ONE: c.VIOLATED},
        {ONE: ("facts 3 to 4 of a are missing",)},
    )
    remaining, _ = allowlist.apply(report, [KNOWN])
    assert remaining.verdicts == {ONE: c.UNKNOWN}
    assert remaining.verdict == c.UNKNOWN
    assert remaining.gaps == report.gaps
    assert remaining.doubts == report.doubts


def test_what_is_allowed_of_one_task_violates_in_another() -> None:
    report = Report((finding(ONE), finding(TWO)), verdicts={ONE: c.VIOLATED, TWO: c.VIOLATED})
    remaining, allowed = allowlist.apply(report, [Allowance(c.TERMINAL_OVERWRITTEN, "why", "one")])
    assert [a.finding for a in allowed] == [finding(ONE)]
    assert remaining.findings == (finding(TWO),)
    assert remaining.verdicts == {ONE: c.FINE, TWO: c.VIOLATED}


def test_other_findings_of_the_task_still_count() -> None:
    other = finding(rule=c.ABANDONED)
    remaining, _ = allowlist.apply(Report((finding(), other), verdicts={ONE: c.VIOLATED}), [KNOWN])
    assert remaining.findings == (other,)
    assert remaining.verdicts == {ONE: c.VIOLATED}


def test_the_reason_of_the_first_entry_that_fits_is_told() -> None:
    narrow = Allowance(c.TERMINAL_OVERWRITTEN, "this one", "one")
    _, allowed = allowlist.apply(Report((finding(),)), [narrow, KNOWN])
    assert [a.reason for a in allowed] == ["this one"]


def test_without_entries_the_report_stays_as_it_is() -> None:
    report = Report((finding(),), verdicts={ONE: c.VIOLATED})
    assert allowlist.apply(report, []) == (report, ())
