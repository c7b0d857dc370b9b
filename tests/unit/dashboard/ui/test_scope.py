from __future__ import annotations

from dataclasses import replace

import pytest

from a2a_fencing_dashboard.store.protocol import Window
from a2a_fencing_dashboard.ui.scope import RANGES, Scope, bucket_s, buckets
from support.reports import replica_row

SECOND = 1_000_000_000
NOW = 1_700_000_123 * SECOND + 456


def test_everything_has_no_limits_and_no_parameters():
    assert Scope().window(NOW) == Window()
    assert Scope().query == {}


def test_a_scope_is_in_its_url():
    assert Scope("load-42", "last hour").query == {"run": "load-42", "range": "last hour"}


@pytest.mark.parametrize("name", [name for name, seconds in RANGES.items() if seconds])
def test_a_range_moves_on_in_steps_and_never_shows_more_than_it_says(name):
    scope, seconds = Scope(range=name), RANGES[name]
    step = bucket_s(seconds) * SECOND
    since = scope.window(NOW).since
    assert NOW - seconds * SECOND <= since <= NOW - seconds * SECOND + step
    assert {
        scope.window(t).since for t in range(NOW // step * step, NOW // step * step + step, step // 7)
    } == {since}
    assert scope.window(NOW + step).since == since + step


def test_buckets_cut_any_time_into_a_readable_number_of_parts():
    for seconds in (1, 60, 300, 900, 3_600, 21_600, 86_400, 30 * 86_400):
        assert 1 <= seconds / bucket_s(seconds) <= 75 or bucket_s(seconds) == 1


def test_without_limits_a_chart_spans_the_life_of_the_replicas():
    row = replica_row(started=100 * SECOND, last_seen=150 * SECOND)
    later = replace(row, replica="r2", started_unix_nano=120 * SECOND, last_seen_unix_nano=159 * SECOND)
    assert buckets(Window(), [row, later], NOW) == range(100, 160, 1)


def test_the_bucket_that_is_still_filling_is_left_out():
    row = replica_row(started=NOW - 600 * SECOND, last_seen=NOW)
    drawn = buckets(Window(), [row], NOW)
    assert drawn.step > 1
    assert drawn[-1] + drawn.step <= NOW // SECOND


def test_of_a_history_that_has_ended_the_last_bucket_is_drawn():
    row = replica_row(started=NOW - 600 * SECOND, last_seen=NOW)
    drawn = buckets(Window(), [row], NOW, ended=True)
    assert drawn[-1] + drawn.step > NOW // SECOND


def test_a_range_is_drawn_up_to_now_also_when_nobody_reports():
    row = replica_row(started=0, last_seen=SECOND)
    window = Scope(range="last 5 min").window(NOW)
    drawn = buckets(window, [row], NOW)
    assert drawn[0] == window.since // SECOND
    assert NOW // SECOND - drawn.step <= drawn[-1] + drawn.step <= NOW // SECOND


def test_there_is_always_something_to_draw():
    assert len(buckets(Window(), [], NOW)) == 1
    assert len(buckets(Window(), [replica_row(started=NOW, last_seen=NOW)], NOW)) == 1


def test_time_zone_and_refresh_rate_are_in_the_url_where_they_are_not_the_usual_ones():
    assert Scope(zone="UTC", refresh="5 s").query == {"zone": "UTC", "refresh": "5 s"}
    assert Scope(refresh="5 s").every_s == 5
