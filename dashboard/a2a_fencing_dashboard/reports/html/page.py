"""The page: a template filled with text that is escaped, and scripts that are pinned by their hash.

The page forbids itself the network and every script but the two of ours, so that whatever a task id or a
message contains cannot run or call home, even if escaping failed.
"""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cache
from importlib import metadata
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from a2a_fencing import conventions as c
from a2a_fencing.facts import TaskKey
from a2a_fencing_dashboard.reports.dossier import LONGEST_LINE, Dossier, task_title
from a2a_fencing_dashboard.reports.html.section import section
from a2a_fencing_dashboard.ui import palette
from a2a_fencing_dashboard.ui.words import VERDICT_WORDS, replica_name, shown

# At most so many violated tasks are told in full, and tasks in doubt are listed.
_MOST_TASKS: Final = 25
_MOST_DOUBTS: Final = 100
_MOST_RUNS: Final = 5

_FILES: Final = "a2a_fencing_dashboard.reports.html"


@dataclass(frozen=True, slots=True)
class _Replica:
    name: str
    instance: str
    facts: int
    missing: int


def as_html(dossier: Dossier, told: TaskKey | None = None) -> str:
    """The report of a judged history, complete in itself.

    Args:
        dossier: The history; of a single task, its facts and a `Report` with its findings.
        told: A task that is told in full also where it broke no rule.
    """
    violated = [case for case in dossier.cases if case.violations]
    cases = violated[:_MOST_TASKS]
    if told is not None and not any(_same_task(case.key, told) for case in cases):
        cases.insert(0, dossier.case(told))
    doubtful = [case for case in dossier.cases if case.verdict == c.UNKNOWN]
    infos = Counter(finding.rule for finding in dossier.report.findings if not finding.violates)
    templates = _templates()
    style, script = (Markup(_source(templates, name)) for name in ("report.css", "report.js"))
    plotly = Markup(_plotly() if cases else "")
    html = templates.get_template("report.html.j2").render(
        policy=_policy(plotly, script),
        style=style,
        plotly=plotly,
        script=script,
        verdict=dossier.verdict,
        word=VERDICT_WORDS[dossier.verdict],
        glyph=palette.VERDICTS[dossier.verdict].glyph,
        summary=dossier.summary(),
        period=_period(dossier),
        runs=[f"run {run}, {guard}" for run, guard in dossier.runs.items()][:_MOST_RUNS],
        version=metadata.version("a2a-fencing"),
        replicas=_replicas(dossier),
        gaps=[dossier.gap(gap) for gap in dossier.report.gaps],
        sections=[section(dossier, case) for case in cases],
        violated=len(violated),
        allowed=[
            (shown(one.finding.rule), task_title(one.finding.task), shown(one.reason, LONGEST_LINE))
            for one in dossier.allowed
        ],
        doubts=[
            (task_title(case.key), [shown(doubt, LONGEST_LINE) for doubt in case.doubts])
            for case in doubtful[:_MOST_DOUBTS]
        ],
        doubtful=len(doubtful),
        infos=[(shown(rule), number) for rule, number in sorted(infos.items())],
    )
    # A lone surrogate, which JSON can carry, cannot be written to a file.
    return html.encode("utf-8", "replace").decode("utf-8")


def _same_task(one: TaskKey, other: TaskKey) -> bool:
    """Whether two keys name one task, in whichever incarnation."""
    return (one.store, one.owner, one.task_id) == (other.store, other.owner, other.task_id)


def _templates() -> Environment:
    return Environment(
        loader=PackageLoader(_FILES, "."),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )


def _source(templates: Environment, name: str) -> str:
    assert templates.loader is not None
    return templates.loader.get_source(templates, name)[0]


@cache
def _plotly() -> str:
    return str(get_plotlyjs())


def _policy(*scripts: str) -> str:
    """The page's Content-Security-Policy. Figures set styles; their image export needs data URLs."""
    hashes = " ".join(_hash(script) for script in scripts if script)
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline';"
        " img-src data: blob:; base-uri 'none'; form-action 'none'"
    )


def _hash(script: str) -> str:
    digest = hashlib.sha256(script.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def _period(dossier: Dossier) -> str:
    """When the first and the last fact were recorded, by the clocks of their replicas."""
    times = [fact.time_unix_nano for fact in dossier.facts.values()]
    if not times:
        return ""
    first, last = (_moment(time) for time in (min(times), max(times)))
    day, _, time = last.partition(" ")
    if first == last:
        return f"{first} UTC"
    return f"{first} to {time if first.startswith(day) else last} UTC"


def _moment(unix_nano: int) -> str:
    return f"{datetime.fromtimestamp(unix_nano / 1e9, tz=timezone.utc):%Y-%m-%d %H:%M:%S}"


def _replicas(dossier: Dossier) -> list[_Replica]:
    facts = Counter(fact.replica for fact in dossier.facts.values())
    missing: Counter[str] = Counter()
    for gap in dossier.report.gaps:
        missing[gap.replica] += gap.count
    rows = [
        _Replica(
            replica_name(dossier.names, replica), shown(replica, 60), facts[replica], missing[replica]
        )
        for replica in facts | missing
    ]
    return sorted(rows, key=lambda row: (row.name, row.instance))
