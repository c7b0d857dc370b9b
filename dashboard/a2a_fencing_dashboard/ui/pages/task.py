"""Task: what happened to one task, told, drawn and listed."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from typing import Final

import streamlit as st

from a2a_fencing import conventions as c
from a2a_fencing.checker import Finding
from a2a_fencing.facts import TaskKey
from a2a_fencing_dashboard.store.protocol import FindingRow
from a2a_fencing_dashboard.ui import (
    detail,
    exporting,
    findings,
    frames,
    links,
    noting,
    parts,
    story,
    words,
)
from a2a_fencing_dashboard.ui.charts.schedule import Schedule, focus, part
from a2a_fencing_dashboard.ui.charts.timeline import timeline
from a2a_fencing_dashboard.ui.kept import kept
from a2a_fencing_dashboard.ui.offences import offences as offences_of
from a2a_fencing_dashboard.ui.queries import TaskView
from a2a_fencing_dashboard.ui.view import View, current

# At most so many: facts drawn, facts listed, sentences told, traces whose spans are listed.
_DRAWN: Final = 200
_LISTED: Final = 1_000
_TOLD: Final = 10
_TRACES: Final = 20


def render() -> None:
    """Draws the page."""
    view = current()
    query = st.query_params.to_dict()
    key = links.task_key(query)
    task = view.queries.task(view.at, key) if key else None
    if task is None:
        _which(view, query.get("task", ""))
        return
    ordered = task.ordered
    _head(view, task)
    _judgement(view, task, ordered)
    _drawn(view, task, ordered)
    _facts(view, task, ordered)
    _spans(view, task, ordered)


def _which(view: View, task_id: str) -> None:
    """For a URL that does not name exactly one stored task."""
    found = view.queries.matching(view.at, task_id) if task_id else ()
    if not found:
        with parts.nothing_here("No such task is stored." if task_id else "No task is chosen."):
            st.page_link(view.pages[links.TASKS], label="Go to the list of tasks")
        return
    st.text(f"{words.count(len(found), 'task')} with the id {words.shown(task_id, 80)}:")
    st.dataframe(
        frames.tasks(found, view.names, view.zone, lambda key: links.task_url(key, view.scope.query)),
        hide_index=True,
        key="which",
        column_config=parts.TASK_COLUMNS,
    )


def _head(view: View, task: TaskView) -> None:
    row = task.row
    with st.container(
        horizontal=True, horizontal_alignment="distribute", vertical_alignment="center", key="task-head"
    ):
        with st.container(key="task-title", width="content"):
            st.text(words.shown(row.key.task_id, 100))
        _neighbours(view, row.key)
        exporting.menu(
            partial(view.queries.task_excerpt, row.key, exporting.MOST_FACTS),
            row.key.task_id,
            row.facts,
            key="task",
            pictured=True,
        )
    parts.pairs(
        [
            ("state", frames.state(row.state)),
            ("version", "none" if row.version is None else words.version(row.version)),
            ("owner", row.key.owner or "none"),
            ("context", row.context_id or "none"),
            ("store", words.shown(row.key.store, 48)),
            ("run", row.run or "none"),
            ("reported by", ", ".join(words.replica_name(view.names, r) for r in row.replicas)),
            *([("incarnation", str(row.key.incarnation))] if row.key.incarnation else []),
        ],
        key="task",
    )


def _neighbours(view: View, key: TaskKey) -> None:
    near = view.queries.neighbours(view.at, key, view.window)
    if not near.total or (near.place and near.total == 1):
        return
    with st.container(horizontal=True, vertical_alignment="center", width="content", key="neighbours"):
        _step(view, near.previous, "Newer", ":material/chevron_left:", "left")
        place = f"{near.place:,} of " if near.place else ""
        st.caption(f"violated: {place}{near.total:,}", width="content")
        _step(view, near.next, "Older" if near.place else "Newest", ":material/chevron_right:", "right")


def _step(view: View, key: TaskKey | None, label: str, icon: str, side: parts.Side) -> None:
    st.page_link(
        view.pages[links.TASK],
        label=label,
        icon=icon,
        icon_position=side,
        disabled=key is None,
        query_params=links.task_query(key) if key else None,
    )


def _judgement(view: View, task: TaskView, ordered: Schedule) -> None:
    violations = task.violations
    if not violations:
        fine = task.row.verdict == c.FINE
        with parts.verdict_box(task.row.verdict, "No rule was broken." if fine else _UNDECIDED):
            _findings(view, task.findings)
        return
    worst = violations[0].finding
    with parts.verdict_box(c.VIOLATED, words.named(worst.explanation, view.names)):
        _findings(view, task.findings, headline=worst)
        with st.container(key="story"):
            st.text("\n".join(_story(view, task, ordered)))
        noting.said(view, task.findings)
        with st.container(key="actions", horizontal=True, vertical_alignment="center"):
            noting.buttons(view, task.row.key, task.findings)


_UNDECIDED: Final = "No rule was broken in what has arrived; facts that could tell are missing."


def _findings(view: View, rows: Sequence[FindingRow], headline: Finding | None = None) -> None:
    """One line each; of the one that is the headline, first, only what its rule means."""
    meaning = words.RULE_MEANINGS.get(headline.rule, "") if headline is not None else ""
    drawn = [findings.Line(headline, meaning, aside=True)] if headline is not None else []
    drawn += [
        findings.Line(
            row.finding,
            words.named(row.finding.explanation, view.names),
            muted=row.muted is not None,
        )
        for row in rows
        if row.finding is not headline
    ]
    findings.lines(drawn)


def _story(view: View, task: TaskView, ordered: Schedule) -> list[str]:
    """The facts from the first that shows a violation to the last, one sentence each."""
    witness = {fact_id for row in task.violations for fact_id in row.finding.witness}
    places = [index for index, fact in enumerate(ordered.facts) if fact.id in witness]
    if not places:
        return []
    chosen = list(range(places[0], places[-1] + 1))
    for minor in _MINOR:
        if len(chosen) <= _TOLD:
            break
        chosen = [i for i in chosen if ordered.facts[i].kind != minor or ordered.facts[i].id in witness]
    first = ordered.times[0]
    return [
        f"+{words.elapsed(ordered.times[i] - first)}: {story.sentence(ordered.facts[i], view.names)}."
        for i in chosen[:_TOLD]
    ]


_MINOR: Final = (c.VIOLATION, c.EXECUTION, c.READ, c.DROPPED, c.ANSWER)
"""What a long story leaves out, in this order."""


def _offences(task: TaskView, ordered: Schedule) -> dict[str, tuple[str, ...]]:
    return offences_of((row.finding for row in task.violations), ordered)


def _drawn(view: View, task: TaskView, ordered: Schedule) -> None:
    if not ordered.facts:
        return
    offences = _offences(task, ordered)
    start, end = focus(ordered, offences, _DRAWN)
    with st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center"):
        parts.heading("Timeline")
        scaled = st.toggle(
            "To scale", key="scale", bind="query-params", help="Draw idle time as long as it was"
        )
    clicked = st.plotly_chart(
        kept(
            "timeline",
            (_shown(view, task, offences), scaled),
            lambda: timeline(part(ordered, start, end), offences, view.names, scaled=scaled),
        ),
        key="timeline",
        on_select="rerun",
        selection_mode="points",
        config=parts.CHART | {"scrollZoom": False} | exporting.picture(task.row.key.task_id),
        alt="Timeline: what clients were told, the store's versions, and the facts of each replica",
    )
    notes = ["ordered by version", "click on a fact for all of it"]
    if end - start < len(ordered.facts):
        notes.append(f"showing facts {start + 1:,} to {end:,} of {len(ordered.facts):,}")
    for replica, moved in ordered.corrections.items():
        name = words.replica_name(view.names, replica)
        notes.append(f"clock of {name} moved by +{words.duration(moved)} so that causes come first")
    with st.container(key="notes"):
        st.text(" · ".join(notes))
    chosen = detail.picked(clicked)
    for place, fact in enumerate(ordered.facts, start=1):
        if fact.id == chosen:
            detail.fact(view, fact, place)


def _shown(view: View, task: TaskView, offences: Mapping[str, tuple[str, ...]]) -> Hashable:
    """What decides how a task's facts look; of those, there can only be more."""
    return (
        view.settings,
        task.row.key,
        task.row.facts,
        tuple(offences.items()),
        tuple(view.names.items()),
    )


def _facts(view: View, task: TaskView, ordered: Schedule) -> None:
    parts.heading("Facts")
    offences = _offences(task, ordered)
    start, end = focus(ordered, offences, _LISTED)

    def draw() -> None:
        _table(view, ordered, offences, range(start, end))

    kept("facts", _shown(view, task, offences), draw)
    parts.showing(start, end - start, len(ordered.facts), "fact")


def _table(
    view: View, ordered: Schedule, offences: Mapping[str, tuple[str, ...]], places: range
) -> None:
    first = ordered.times[0] if ordered.times else 0
    rows = [(i + 1, ordered.facts[i], ordered.times[i] - first) for i in places]
    jaeger = view.settings.jaeger_url
    trace_url = partial(links.trace_url, jaeger) if jaeger else None
    broken = {fact_id: words.gravest(rules) for fact_id, rules in offences.items()}
    table = frames.facts(rows, view.names, broken, trace_url)
    st.dataframe(
        frames.colored(table, ("state", "broken rule")),
        hide_index=True,
        key="facts",
        height="content" if len(rows) <= 25 else 640,
        column_config=_FACT_COLUMNS,
        placeholder="",
    )


def _spans(view: View, task: TaskView, ordered: Schedule) -> None:
    traces = tuple(dict.fromkeys(fact.trace_id for fact in ordered.facts if fact.trace_id))
    rows = view.queries.spans(view.at, traces[:_TRACES])
    if not rows:
        st.caption("No spans of this task's traces are stored.")
        return
    parts.heading("Spans")
    facts_on: dict[str, str] = {}
    for place, fact in enumerate(ordered.facts, start=1):
        if fact.span_id and fact.kind in (c.WRITE, c.DISPATCH):
            before = facts_on.get(fact.span_id)
            facts_on[fact.span_id] = f"{before}, #{place}" if before else f"#{place}"
    st.dataframe(
        frames.spans(rows, facts_on),
        hide_index=True,
        key="spans",
        height="content" if len(rows) <= 20 else 520,
        column_config=_SPAN_COLUMNS,
    )
    if len(traces) > _TRACES:
        st.caption(f"showing the spans of {_TRACES} of {words.count(len(traces), 'trace')}")


_SPAN_COLUMNS: Final = {
    "fact": st.column_config.TextColumn(
        width=70, help="The write or dispatch above under which this was done"
    )
}

_FACT_COLUMNS: Final = {
    "#": st.column_config.NumberColumn(width=50, pinned=True),
    "after": st.column_config.TextColumn(width=80),
    "replica": st.column_config.TextColumn(width=90),
    "broken rule": st.column_config.TextColumn(width=230),
    "what happened": st.column_config.TextColumn(width=440),
    "base → version": st.column_config.TextColumn(width=100),
    "outcome": st.column_config.TextColumn(width=125),
    "trace": st.column_config.LinkColumn(display_text=r"/trace/([0-9a-f]{8})", width=90),
}
