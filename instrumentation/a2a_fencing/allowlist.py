"""Which findings a project has decided to live with for now, and why.

```toml
[tool.a2a-fencing]
allow = [{rule = "abandoned", reason = "replicas are killed on purpose in this test", task = "7f3c"}]
```
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from a2a_fencing import conventions as c
from a2a_fencing.checker import Finding, Report
from a2a_fencing.facts import TaskKey

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_FILE: Final = "pyproject.toml"
_TABLE: Final = "a2a-fencing"
_SETTINGS: Final = ("rule", "reason", "task")


class AllowListError(ValueError):
    """An allow-list cannot be understood; the text is one line that says where and why."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """One entry of an allow-list.

    Attributes:
        rule: One of `conventions.RULES`.
        reason: Why its findings are allowed.
        task: The task id to which this is limited, or None.
    """

    rule: str
    reason: str
    task: str | None = None

    def covers(self, finding: Finding) -> bool:
        """Whether this finding is allowed by the entry."""
        return finding.rule == self.rule and self.task in (None, finding.task.task_id)


@dataclass(frozen=True, slots=True)
class Allowed:
    """A finding that does not count, and why."""

    finding: Finding
    reason: str


def apply(report: Report, allowances: Sequence[Allowance]) -> tuple[Report, tuple[Allowed, ...]]:
    """Takes what is allowed out of a report; of several entries that fit, the first one counts.

    Returns:
        The report as if the allowed findings were not there, and those findings.
    """
    if not allowances:
        return report, ()
    remaining: list[Finding] = []
    allowed: list[Allowed] = []
    for finding in report.findings:
        entry = next((entry for entry in allowances if entry.covers(finding)), None)
        if entry is None:
            remaining.append(finding)
        else:
            allowed.append(Allowed(finding, entry.reason))
    violated = {finding.task for finding in remaining if finding.violates}
    verdicts = {
        task: _without_findings(report, task)
        if verdict == c.VIOLATED and task not in violated
        else verdict
        for task, verdict in report.verdicts.items()
    }
    return replace(report, findings=tuple(remaining), verdicts=verdicts), tuple(allowed)


def _without_findings(report: Report, task: TaskKey) -> str:
    return c.UNKNOWN if report.doubts.get(task) else c.FINE


def rule_named(name: str) -> str:
    """The name itself, if it is that of a rule.

    Raises:
        AllowListError: It is not.
    """
    if name not in c.RULES:
        raise AllowListError(f"there is no rule {name!r}; there are {', '.join(c.RULES)}")
    return name


def nearest(folder: Path) -> Path | None:
    """The pyproject.toml of the project that a folder belongs to."""
    folder = folder.resolve()
    return next((path for up in (folder, *folder.parents) if (path := up / _FILE).is_file()), None)


def read(path: Path) -> tuple[Allowance, ...]:
    """The allow-list in a pyproject.toml; empty where it has none.

    Raises:
        AllowListError: The file cannot be read, or an entry cannot be understood.
    """
    try:
        settings = tomllib.loads(path.read_text("utf-8"))
        return tuple(_allowances(settings))
    except OSError as error:
        raise AllowListError(f"{path}: {error.strerror}") from error
    except ValueError as error:
        raise AllowListError(f"{path}: {error}") from error


def _allowances(settings: Mapping[str, Any]) -> Iterator[Allowance]:
    tools = settings.get("tool", {})
    table = tools.get(_TABLE, {}) if isinstance(tools, dict) else None
    if not isinstance(table, dict):
        raise AllowListError(f"[tool.{_TABLE}] is not a table")
    unknown = next((name for name in table if name != "allow"), None)
    if unknown is not None:
        raise AllowListError(f"[tool.{_TABLE}] has no setting {unknown!r}")
    entries = table.get("allow", [])
    if not isinstance(entries, list):
        raise AllowListError("allow is not an array of tables")
    for index, entry in enumerate(entries):
        yield _allowance(entry, f"allow[{index}]")


def _allowance(entry: Any, place: str) -> Allowance:
    if not isinstance(entry, dict):
        raise AllowListError(f"{place} is not a table")
    rule = entry.get("rule")
    if not isinstance(rule, str):
        raise AllowListError(f"{place} names no rule")
    try:
        rule_named(rule)
    except AllowListError as error:
        raise AllowListError(f"{place}: {error}") from None
    reason, task = entry.get("reason"), entry.get("task")
    place = f"{place} ({rule})"
    if not (isinstance(reason, str) and reason.strip()):
        raise AllowListError(f"{place} gives no reason")
    unknown = next((name for name in entry if name not in _SETTINGS), None)
    if unknown is not None:
        raise AllowListError(f"{place} has no setting {unknown!r}")
    if not (task is None or isinstance(task, str)):
        raise AllowListError(f"{place}: task is not text")
    return Allowance(rule, reason.strip(), task)
