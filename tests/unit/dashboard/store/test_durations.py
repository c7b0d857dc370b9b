"""Durations in buckets: what they say, and that it does not depend on what arrived when."""

from __future__ import annotations

import random

import pytest

from a2a_fencing_dashboard.store.durations import ACCURACY, Durations, bucket


def of(*nanoseconds: int) -> Durations:
    counts: dict[int, int] = {}
    for ns in nanoseconds:
        counts[bucket(ns)] = counts.get(bucket(ns), 0) + 1
    return Durations(counts)


def test_nothing_has_no_quantiles() -> None:
    assert Durations().quantile(0.5) is None
    assert Durations().shares() == []


@pytest.mark.parametrize("part", [0.0, 0.5, 0.9, 0.99, 1.0])
def test_a_quantile_is_as_exact_as_it_says(part: float) -> None:
    some = random.Random(7)
    values = sorted(int(some.lognormvariate(15, 2)) for _ in range(5_000))
    exact = values[max(0, -(-int(part * 1000) * len(values) // 1000) - 1)]
    told = of(*values).quantile(part)
    assert told is not None
    assert abs(told - exact) <= ACCURACY * exact + 1


def test_what_took_no_time_counts_too() -> None:
    assert of(0, 0, 1).total == 3
    assert of(0).quantile(0.99) == 1


def test_they_add_up_and_come_back() -> None:
    one, other = of(5, 5, 7_000), of(5, 90)
    both = Durations.together((one, other))
    assert both == of(5, 5, 5, 90, 7_000)
    assert Durations.decode(both.encode()) == both
    assert Durations.decode(None) == Durations()


def test_shares_end_with_all_of_them() -> None:
    shares = of(1_000, 2_000, 2_000, 9_000_000).shares()
    assert [share for _, share in shares] == [0.25, 0.75, 1.0]
    assert [ns for ns, _ in shares] == sorted(ns for ns, _ in shares)
