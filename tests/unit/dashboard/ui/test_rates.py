from __future__ import annotations

import pytest

from a2a_fencing_dashboard.store.protocol import SeriesPoint
from a2a_fencing_dashboard.ui import palette
from a2a_fencing_dashboard.ui.charts.rates import MEASURES, MOST_LINES, rates

REPLICAS = [("r1", "api-0"), ("r2", "api-1")]
BUCKETS = range(100, 150, 10)


def line(figure, measure, replica):
    row = list(MEASURES).index(measure)
    axis = f"y{row + 1}" if row else "y"
    (found,) = [t for t in figure.data if t.yaxis == axis and t.legendgroup == replica]
    return found


def test_counts_become_rates_and_nothing_becomes_zero():
    points = [SeriesPoint(110, "r1", "writes", 50), SeriesPoint(130, "r1", "writes", 5)]
    figure = rates(points, REPLICAS, BUCKETS, None)
    assert list(line(figure, "writes", "r1").y) == [0, 5, 0, 0.5, 0, 0]
    assert list(line(figure, "writes", "r2").y) == [0] * 6
    assert list(line(figure, "conflicts", "r1").y) == [0] * 6


@pytest.mark.parametrize(("count", "label"), [(50, "5"), (3, "0.3"), (12_345, "1,234"), (1_234, "123")])
def test_the_peak_is_told_without_powers_of_ten(count, label):
    figure = rates([SeriesPoint(110, "r1", "writes", count)], REPLICAS, BUCKETS, None)
    axis = figure.layout[line(figure, "writes", "r1").yaxis.replace("y", "yaxis")]
    assert axis.ticktext[-1] == label


def test_the_last_bucket_is_drawn_as_wide_as_the_others():
    figure = rates([SeriesPoint(140, "r1", "writes", 50)], REPLICAS, BUCKETS, None)
    drawn = line(figure, "writes", "r1")
    assert list(drawn.y[-2:]) == [5, 5]
    assert str(drawn.x[-1]).endswith("00:02:30")


def test_a_replica_keeps_its_colour_in_all_charts():
    figure = rates([], REPLICAS, BUCKETS, None)
    for index, (replica, _) in enumerate(REPLICAS):
        looks = {(t.line.color, t.line.dash) for t in figure.data if t.legendgroup == replica}
        assert looks == {palette.replica_line(index)}
    assert [t.name for t in figure.data if t.showlegend] == ["api-0", "api-1"]


def test_one_small_chart_each_on_one_time_axis():
    figure = rates([], REPLICAS, BUCKETS, None)
    titles = [annotation.text for annotation in figure.layout.annotations]
    assert titles == [f"{title} per second" for title in MEASURES.values()]
    domains = [figure.layout[f"yaxis{n or ''}"].domain for n in (0, 2, 3, 4, 5)]
    assert domains == sorted(domains, reverse=True)
    assert all(figure.layout[f"xaxis{n}"].matches == "x" for n in (2, 3, 4, 5))


def test_times_are_told_in_the_zone_of_the_browser():
    figure = rates([], REPLICAS, range(0, 20, 10), "Asia/Tokyo")
    assert str(figure.data[0].x[0]).startswith("1970-01-01T09:00:00")


def test_a_point_outside_the_range_is_left_out():
    figure = rates([SeriesPoint(900, "r1", "writes", 5)], REPLICAS, BUCKETS, None)
    assert sum(line(figure, "writes", "r1").y) == 0


def test_hostile_names_stay_text():
    figure = rates([], [("r", "<b>$x$</b>")], BUCKETS, None)
    assert figure.data[0].name == "&lt;b&gt;&#36;x&#36;&lt;/b&gt;"


def test_many_replicas_are_the_newest_with_a_line_each_and_the_sum_of_the_earlier_ones():
    replicas = [(f"r{n}", f"api-{n}") for n in range(MOST_LINES + 3)]
    points = [SeriesPoint(110, replica, "writes", 20) for replica, _ in replicas[1:]]
    figure = rates(points, replicas, BUCKETS, None)
    names = [t.name for t in figure.data if t.showlegend]
    assert names == ["2 earlier replicas", *(name for _, name in replicas[3:])]
    assert list(line(figure, "writes", "earlier").y) == [0, 4, 0, 0, 0, 0]
    last = line(figure, "writes", replicas[-1][0])
    assert (last.line.color, last.line.dash) == palette.replica_line(len(replicas) - 1)


def test_of_many_replicas_those_that_counted_nothing_are_left_out():
    replicas = [(f"r{n}", f"api-{n}") for n in range(MOST_LINES + 3)]
    figure = rates([SeriesPoint(110, "r0", "writes", 20)], replicas, BUCKETS, None)
    assert [t.name for t in figure.data if t.showlegend] == ["api-0"]
