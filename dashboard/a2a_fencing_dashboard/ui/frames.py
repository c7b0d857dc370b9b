"""Rows as tables: one column a thing a person asks for, values already in words where that helps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import pandas as pd
from pandas.io.formats.style import Styler

from a2a_fencing.facts import Fact, TaskKey
from a2a_fencing_dashboard.store.protocol import ReplicaRow, Span, TaskRow
from a2a_fencing_dashboard.ui import palette, words
from a2a_fencing_dashboard.ui.queries import is_silent
from a2a_fencing_dashboard.ui.story import sentence
from a2a_fencing_dashboard.ui.words import Names, duration, moment, replica_name, shown, version

_NS: Final = 1_000_000_000
_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


def _table(rows: list[dict[str, Any]]) -> pd.DataFrame:
    table: pd.DataFrame = pd.DataFrame(rows)
    return table


def colored(table: pd.DataFrame, columns: Sequence[str]) -> Styler:
    """The table with the cells of these columns in the colour of the sign that they begin with."""
    return table.style.map(_cell_style, subset=[name for name in columns if name in table.columns])


def _cell_style(cell: object) -> str:
    color = _COLORS.get(cell[:1]) if isinstance(cell, str) else None
    return f"color: {color}" if color else ""


# What is fine stays quiet.
_COLORS: Final = {
    look.glyph: look.color
    for look in (*palette.STATES.values(), palette.VIOLATION, palette.UNSURE, palette.UNKNOWN_STATE)
}


def replicas(
    rows: Sequence[ReplicaRow], names: Names, now_unix_nano: int, zone: str | None
) -> pd.DataFrame:
    """One row a replica."""
    return _table(
        [
            {
                "replica": replica_name(names, row.replica),
                "alive": _alive(row, now_unix_nano, zone),
                "since": _time(row.started_unix_nano, zone),
                "sdk": shown(row.sdk_version or "", 20),
                "guard": "on" if row.guard else "off",
                "facts": row.facts,
                "missing": row.missing,
                "executing": _executing(row, now_unix_nano),
                "clock": "" if row.skew_ns is None else f"{_signed(row.skew_ns)}",
                "instance": shown(row.replica, 60),
            }
            for row in rows
        ]
    )


def _alive(row: ReplicaRow, now: int, zone: str | None) -> str:
    if not is_silent(row, now):
        return "✓ yes"
    since = words.clock(row.last_seen_unix_nano, zone)
    return f"✖ SILENT since {since}" if row.executing else f"silent since {since}"


def _executing(row: ReplicaRow, now: int) -> str:
    if row.executing and is_silent(row, now):
        return f"{words.count(row.executing, 'task')} in doubt"
    return words.count(row.executing)


def _signed(nanoseconds: int) -> str:
    return f"+{duration(nanoseconds)}" if nanoseconds >= 0 else duration(nanoseconds)


def _time(unix_nano: int | None, zone: str | None) -> str:
    return "" if unix_nano is None else words.clock(unix_nano, zone)


def verdict(value: str) -> str:
    """A verdict with its sign, for a table cell."""
    look = palette.VERDICTS.get(value)
    word = words.VERDICT_WORDS.get(value) or shown(value, 20)
    return f"{look.glyph} {word}" if look else word


def state(value: str | None) -> str:
    """A task state with its sign, for a table cell."""
    return f"{palette.state_look(value).glyph} {words.state(value)}"


def tasks(
    rows: Sequence[TaskRow], names: Names, zone: str | None, url: Callable[[TaskKey], str]
) -> pd.DataFrame:
    """One row a task; ``task`` is its link."""
    return _table(
        [
            {
                "verdict": verdict(row.verdict),
                "task": url(row.key),
                "state": state(row.state),
                "version": "" if row.version is None else version(row.version),
                "broken rules": words.gravest(row.rules),
                "last change": pd.Timestamp(moment(row.last_unix_nano, zone)).tz_localize(None),
                "conflicts": _unless_zero(row.conflicts),
                "rejections": _unless_zero(row.rejections),
                "drops": _unless_zero(row.drops),
                "dispatches": _unless_zero(row.dispatches),
                "facts": row.facts,
                "replicas": ", ".join(replica_name(names, replica) for replica in row.replicas),
                "owner": shown(row.key.owner, 60),
                "context": shown(row.context_id or "", 60),
                "run": shown(row.run or "", 40),
                "store": shown(row.key.store, 60),
            }
            for row in rows
        ]
    )


def _unless_zero(number: int) -> str:
    return words.count(number) if number else ""


def facts(
    rows: Sequence[tuple[int, Fact, int]],
    names: Names,
    offences: Mapping[str, str],
    trace_url: Callable[[str | None], str | None] | None,
) -> pd.DataFrame:
    """One row a fact, in the order in which they happened.

    Args:
        rows: Place from 1, the fact, and ns since the first fact.
        names: What replicas are called.
        offences: Fact id -> rules that it broke, in words.
        trace_url: Trace id -> its link; None leaves the links out.
    """
    return _table(
        [
            _fact(place, fact, elapsed, names, offences.get(fact.id, ""))
            | ({"trace": trace_url(fact.trace_id)} if trace_url else {})
            | {
                "trace id": shown(fact.trace_id or "", 40),
                "fact id": shown(fact.id, 80),
            }
            for place, fact, elapsed in rows
        ]
    )


def _fact(place: int, fact: Fact, elapsed: int, names: Names, broke: str) -> dict[str, Any]:
    return {
        "#": place,
        "after": words.elapsed(elapsed),
        "replica": replica_name(names, fact.replica),
        "what happened": sentence(fact, names),
        "broken rule": f"{palette.VIOLATION.glyph} {broke}" if broke else "",
        "base → version": _step(fact),
        "state": state(fact.state) if fact.state else "",
        "outcome": shown(fact.outcome or fact.phase or fact.ending or "", 40),
        "reason": shown(fact.reason or fact.origin or "", 40),
        "took": "" if fact.duration_ns is None else duration(fact.duration_ns),
    }


def _step(fact: Fact) -> str:
    ends = [version(v) for v in (fact.base_version, fact.version) if v is not None]
    return " → ".join(ends)


def spans(rows: Sequence[Span], facts_on: Mapping[str, str] = _NOTHING) -> pd.DataFrame:
    """One row a span, children under their parents, by start.

    Args:
        rows: The spans of some traces.
        facts_on: Span id -> what was recorded on it; the spans beneath belong to it, too.
    """
    first = min((span.start_unix_nano for span in rows), default=0)
    belongs = _nearest(rows, facts_on)
    return _table(
        [
            {
                "span": f"{'    ' * depth}{shown(span.name, 80)}",
                "fact": belongs.get(span.span_id, ""),
                "after": words.elapsed(span.start_unix_nano - first),
                "took": duration(span.end_unix_nano - span.start_unix_nano),
                "error": "✖ error" if span.error else "",
                "service": shown(span.service, 40),
                "attributes": shown(span.attributes, 400),
                "trace": shown(span.trace_id, 40),
            }
            for depth, span in _tree(rows)
        ]
    )


def _nearest(rows: Sequence[Span], facts_on: Mapping[str, str]) -> dict[str, str]:
    """Span id -> the facts on it, or on the nearest span above that has some."""
    found: dict[str, str] = {}
    for _, span in _tree(rows):  # parents first
        own = facts_on.get(span.span_id)
        found[span.span_id] = own or found.get(span.parent_span_id or "", "")
    return found


def _tree(rows: Sequence[Span]) -> list[tuple[int, Span]]:
    """Spans with their depth, each after its parent; one whose parent is not stored is a root."""
    known = {span.span_id for span in rows}
    by_start = sorted(rows, key=lambda span: span.start_unix_nano)
    children: dict[str | None, list[Span]] = {}
    for span in by_start:
        parent = span.parent_span_id if span.parent_span_id in known else None
        children.setdefault(parent, []).append(span)
    listed: dict[str, tuple[int, Span]] = {}
    # Spans that are their own ancestors have no root; they follow as if each were one.
    for root in (*children.get(None, ()), *by_start):
        stack = [(0, root)]
        while stack:
            depth, span = stack.pop()
            if span.span_id not in listed:
                listed[span.span_id] = depth, span
                stack.extend((depth + 1, child) for child in reversed(children.get(span.span_id, [])))
    return list(listed.values())
