"""Figures of two runs over each other."""

from __future__ import annotations

from a2a_fencing_dashboard.store.durations import Durations, bucket
from a2a_fencing_dashboard.store.protocol import SeriesPoint
from a2a_fencing_dashboard.store.runs import RunDurations
from a2a_fencing_dashboard.ui.charts.rates import MEASURES
from a2a_fencing_dashboard.ui.charts.runs import Lines, rates_since_start, shares


def test_each_run_begins_at_zero_with_its_replicas_taken_together() -> None:
    points = [SeriesPoint(102, "r1", "writes", 4), SeriesPoint(102, "r2", "writes", 6)]
    late = [SeriesPoint(900, "r3", "writes", 2)]
    figure = rates_since_start(
        [Lines("A", points, range(100, 104, 2)), Lines("B", late, range(900, 902, 2))]
    )
    row = list(MEASURES).index("writes")
    a, b = (line for line in figure.data if line.yaxis == f"y{row + 1}")
    assert (list(a.x), list(a.y)) == ([0, 2, 4], [0, 5, 5])
    assert (list(b.x), list(b.y)) == ([0, 2], [1, 1])
    assert len(figure.data) == 2 * len(MEASURES)


def test_durations_end_with_all_of_them() -> None:
    saves = Durations({bucket(1_000_000): 1, bucket(9_000_000): 3})
    figure = shares([("A", RunDurations(saves, Durations())), ("B", RunDurations(saves, saves))])
    assert [list(line.y) for line in figure.data] == [[0.25, 1], [0.25, 1], [], [0.25, 1]]


def test_labels_are_text() -> None:
    figure = rates_since_start([Lines("<a href='http://x'>$y$</a>", [], range(1))])
    assert "<" not in figure.data[0].name
    assert "$" not in figure.data[0].name
