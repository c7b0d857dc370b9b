"""Two runs side by side: the same figures of both, and what changed from the first to the second."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from a2a_fencing import conventions as c
from a2a_fencing_dashboard.store.protocol import Overview
from a2a_fencing_dashboard.store.runs import RunDurations, RunRow
from a2a_fencing_dashboard.ui.links import Query
from a2a_fencing_dashboard.ui.verdict import Judgement
from a2a_fencing_dashboard.ui.words import count, duration, gravest_first, shown

BETTER: Final = "better"
WORSE: Final = "worse"

_NONE: Final = "none"
_USUAL: Final = 0.1
_NS: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class RunFigures:
    """All that is compared of one run."""

    row: RunRow
    overview: Overview
    durations: RunDurations
    judgement: Judgement


@dataclass(frozen=True, slots=True)
class Line:
    """One figure of both runs.

    Attributes:
        about: What group of figures it belongs to.
        name: What it is.
        first, second: Its values, in words.
        change: From the first to the second, in words; empty where there is none to tell.
        judgement: `BETTER`, `WORSE`, or empty where neither can be said.
        behind: Which tasks are behind it, as the list of tasks has it in its URL; None where no tasks
            are.
    """

    about: str
    name: str
    first: str
    second: str
    change: str
    judgement: str
    behind: Query | None = None


@dataclass(frozen=True, slots=True)
class _Measure:
    """One figure as a number: how it is read off a run, written, and judged."""

    name: str
    of: Callable[[RunFigures], float | None]
    shown: Callable[[float], str]
    less_is_better: bool | None = None
    """None: more is neither better nor worse."""
    usual: float = 0
    """How much of the value a change may be without saying anything: equal runs differ as much."""
    behind: Query | None = None
    """See `Line.behind`."""


def compare(first: RunFigures, second: RunFigures) -> list[Line]:
    """Every figure of both runs, the gravest first."""
    both = (first, second)
    return [
        _line(about, measure, first, second)
        for about, measures in (
            ("violations", _violations(both)),
            ("fence held", _fence(both)),
            ("per 100 tasks", _SHARES),
            ("load", _LOAD),
            ("durations", _DURATIONS),
            ("history", _HISTORY),
        )
        for measure in measures
    ]


def guard(row: RunRow) -> str:
    """Whether a run's replicas enforce."""
    if row.guarded in (0, row.replicas):
        return "guard on" if row.guarded else "guard off"
    return f"guard on {row.guarded} of {row.replicas} replicas"


def _line(about: str, measure: _Measure, first: RunFigures, second: RunFigures) -> Line:
    before, after = measure.of(first), measure.of(second)
    change, judgement = "", ""
    if before is not None and after is not None and before != after:
        change = _change(measure, before, after)
        if measure.less_is_better is not None and abs(after - before) > measure.usual * before:
            judgement = BETTER if (after < before) == measure.less_is_better else WORSE
    words = [_NONE if value is None else measure.shown(value) for value in (before, after)]
    return Line(about, measure.name, words[0], words[1], change, judgement, measure.behind)


def _change(measure: _Measure, before: float, after: float) -> str:
    sign = "+" if after > before else "-"
    change = f"{sign}{measure.shown(abs(after - before))}"
    return f"{change} ({sign}{abs(after - before) / before:.0%})" if before else change


def _violations(both: Sequence[RunFigures]) -> Iterator[_Measure]:
    yield _Measure(
        "violated tasks", lambda run: run.overview.violated_tasks, _whole, True, behind=_VIOLATED
    )
    for rule in gravest_first(_names(both, lambda run: run.overview.violations)):
        behind: Query = {"rule": rule}
        yield _counted(shown(rule, 40), rule, lambda run: run.overview.violations, behind, True)


def _fence(both: Sequence[RunFigures]) -> Iterator[_Measure]:
    for reason in _in_order(both, lambda run: run.overview.conflicts, c.CONFLICT_REASONS):
        name = f"{shown(reason, 40)} conflicts"
        yield _counted(name, reason, lambda run: run.overview.conflicts, _CONFLICTS)
    yield _Measure(
        "terminal rejections",
        lambda run: run.overview.terminal_rejections,
        _whole,
        behind=_REJECTIONS,
    )
    for reason in _in_order(both, lambda run: run.overview.drops, c.DROP_REASONS):
        name = f"dropped, {shown(reason, 40)}"
        yield _counted(name, reason, lambda run: run.overview.drops, _DROPS)


def _counted(
    name: str,
    detail: str,
    counts: Callable[[RunFigures], Mapping[str, int]],
    behind: Query,
    less_is_better: bool | None = None,
) -> _Measure:
    return _Measure(name, lambda run: counts(run).get(detail, 0), _whole, less_is_better, behind=behind)


def _names(
    both: Sequence[RunFigures], counts: Callable[[RunFigures], Mapping[str, int]]
) -> dict[str, None]:
    return dict.fromkeys(name for run in both for name in counts(run))


def _in_order(
    both: Sequence[RunFigures],
    counts: Callable[[RunFigures], Mapping[str, int]],
    usual: Sequence[str],
) -> list[str]:
    places = {name: place for place, name in enumerate(usual)}
    return sorted(_names(both, counts), key=lambda name: (places.get(name, len(places)), name))


def _whole(number: float) -> str:
    return count(round(number))


def _decimal(number: float) -> str:
    return f"{number:,.1f}" if number < 100 else f"{number:,.0f}"


def _took(nanoseconds: float) -> str:
    return duration(round(nanoseconds))


def _share(number: Callable[[Overview], int]) -> Callable[[RunFigures], float | None]:
    def of(run: RunFigures) -> float | None:
        return 100 * number(run.overview) / run.row.tasks if run.row.tasks else None

    return of


def _rate(number: Callable[[Overview], int]) -> Callable[[RunFigures], float | None]:
    def of(run: RunFigures) -> float | None:
        seconds = run.row.worked_ns / _NS
        return number(run.overview) / seconds if seconds else None

    return of


def _conflicts(overview: Overview) -> int:
    return sum(overview.conflicts.values())


def _drops(overview: Overview) -> int:
    return sum(overview.drops.values())


_VIOLATED: Final[Query] = {"verdict": c.VIOLATED}
_CONFLICTS: Final[Query] = {"has": "conflict"}
_REJECTIONS: Final[Query] = {"has": "rejection"}
_DROPS: Final[Query] = {"has": "drop"}
_DISPATCHES: Final[Query] = {"has": "dispatch"}
_ALL: Final[Query] = {}
_FINISHED: Final[Query] = {"state": sorted(c.TERMINAL_STATES)}

_SHARES: Final = (
    _Measure("violated tasks", _share(lambda run: run.violated_tasks), _decimal, True, behind=_VIOLATED),
    _Measure("conflicts", _share(_conflicts), _decimal, behind=_CONFLICTS),
    _Measure(
        "terminal rejections",
        _share(lambda run: run.terminal_rejections),
        _decimal,
        behind=_REJECTIONS,
    ),
    _Measure("dropped events", _share(_drops), _decimal, behind=_DROPS),
)
_LOAD: Final = (
    _Measure("worked for", lambda run: run.row.worked_ns, _took),
    _Measure("tasks", lambda run: run.row.tasks, _whole, behind=_ALL),
    _Measure("finished tasks", lambda run: run.overview.terminal_tasks, _whole, behind=_FINISHED),
    _Measure("writes", lambda run: run.overview.writes, _whole),
    _Measure("dispatches", lambda run: run.overview.dispatches, _whole, behind=_DISPATCHES),
    _Measure("tasks/s", _rate(lambda run: run.tasks), _decimal, False, _USUAL, behind=_ALL),
    _Measure("writes/s", _rate(lambda run: run.writes), _decimal, False, _USUAL),
)
_DURATIONS: Final = (
    _Measure("save, median", lambda run: run.durations.saves.quantile(0.5), _took, True, _USUAL),
    _Measure("save, p99", lambda run: run.durations.saves.quantile(0.99), _took, True, _USUAL),
    _Measure("task, median", lambda run: run.durations.tasks.quantile(0.5), _took, True, _USUAL),
    _Measure("task, p99", lambda run: run.durations.tasks.quantile(0.99), _took, True, _USUAL),
)
_HISTORY: Final = (
    _Measure("facts received", lambda run: run.row.facts, _whole),
    _Measure("facts missing", lambda run: run.row.missing, _whole, True),
)
