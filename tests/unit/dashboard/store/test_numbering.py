from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from a2a_fencing_dashboard.store.numbering import Ranges

numbers = st.lists(st.integers(1, 60), unique=True)


@given(numbers, st.randoms(use_true_random=False))
def test_ranges_are_a_set(arrived: list[int], rng) -> None:
    ranges = Ranges()
    rest = list(arrived)
    while rest:
        size = rng.randint(1, len(rest))
        ranges.add(rest[:size])
        del rest[:size]

    assert [n for n in range(70) if n in ranges] == sorted(arrived)
    assert ranges.count == len(arrived)
    assert ranges.highest == max(arrived, default=0)
    assert Ranges(ranges).count == ranges.count


@given(numbers)
def test_ranges_are_as_few_as_can_be(arrived: list[int]) -> None:
    ranges = Ranges()
    for n in arrived:
        ranges.add([n])

    spans = list(ranges)

    assert all(last + 1 < first for (_, last), (first, _) in pairwise(spans))


@given(numbers, st.integers(0, 70))
def test_holes_are_what_is_not_in_the_ranges(arrived: list[int], up_to: int) -> None:
    ranges = Ranges()
    if arrived:
        ranges.add(arrived)
    up_to = max(up_to, ranges.highest)

    missing = [n for first, last in ranges.holes(up_to) for n in range(first, last + 1)]

    assert missing == [n for n in range(1, up_to + 1) if n not in arrived]


@given(numbers=st.sets(st.integers(1, 30)), first=st.integers(1, 30), length=st.integers(0, 10))
def test_filling_adds_what_is_missing(numbers: set[int], first: int, length: int) -> None:
    ranges = Ranges()
    for n in numbers:
        ranges.add([n])
    ranges.fill(first, first + length)
    expected = numbers | set(range(first, first + length + 1))
    assert {n for begin, end in ranges for n in range(begin, end + 1)} == expected
    assert ranges.count == len(expected)
