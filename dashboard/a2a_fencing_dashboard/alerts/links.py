"""Links into the dashboard."""

from __future__ import annotations

from urllib.parse import urlencode

from a2a_fencing.facts import TaskKey
from a2a_fencing_dashboard.ui.links import task_query


def task_link(dashboard_url: str | None, task: TaskKey, run: str | None) -> str | None:
    """The page of a task; None without a dashboard."""
    if dashboard_url is None:
        return None
    return f"{dashboard_url}/task?{urlencode(task_query(task) | _run(run), doseq=True)}"


def alerts_link(dashboard_url: str | None, rule: str, severity: str, run: str | None) -> str | None:
    """The list of findings by a rule; None without a dashboard."""
    if dashboard_url is None:
        return None
    return f"{dashboard_url}/alerts?{urlencode({'rule': rule, 'severity': severity, **_run(run)})}"


def _run(run: str | None) -> dict[str, str]:
    return {} if run is None else {"run": run}
