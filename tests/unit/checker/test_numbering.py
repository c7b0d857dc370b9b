"""Which facts have arrived, and which are missing."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from a2a_fencing import conventions as c
from a2a_fencing.checker import Gap, check
from a2a_fencing.checker.numbering import Numbering
from a2a_fencing.facts import Fact
from support.tale import Tale


def missing(numbering: Numbering) -> set[int]:
    return {n for gap in numbering.gaps("A") for n in range(gap.first, gap.last + 1)}


@given(st.lists(st.integers(1, 30)), st.integers(0, 30))
def test_what_is_missing_is_what_was_numbered_and_did_not_arrive(
    numbers: list[int], announced: int
) -> None:
    numbering = Numbering()
    arrived: set[int] = set()
    for n in numbers:
        assert numbering.add(n, n * 10) is (n not in arrived)
        arrived.add(n)
    numbering.announce(announced)

    expected = set(range(1, max((*arrived, announced), default=0) + 1)) - arrived
    assert missing(numbering) == expected
    assert numbering.complete is not expected or not expected
    assert numbering.complete is (not expected)


@given(st.lists(st.integers(1, 30), min_size=1, unique=True))
def test_a_gap_says_between_which_times(numbers: list[int]) -> None:
    numbering = Numbering()
    for n in numbers:
        numbering.add(n, n * 10)

    for gap in numbering.gaps("A"):
        assert gap.before_unix_nano == (gap.last + 1) * 10
        assert gap.after_unix_nano == ((gap.first - 1) * 10 if gap.first > 1 else None)


@given(
    st.lists(st.tuples(st.integers(1, 30), st.integers(0, 5)), max_size=6), st.lists(st.integers(1, 40))
)
def test_spans_of_an_earlier_life_count_as_arrived(
    spans: list[tuple[int, int]], numbers: list[int]
) -> None:
    arrived = {n for first, length in spans for n in range(first, first + length + 1)} | set(numbers)
    numbering = Numbering()
    for n in numbers[::2]:
        numbering.add(n, None)
    numbering.assume((first, first + length) for first, length in spans)
    for n in numbers[1::2]:
        numbering.add(n, None)

    assert missing(numbering) == set(range(1, max(arrived, default=0) + 1)) - arrived


def test_a_heartbeat_tells_of_a_lost_tail() -> None:
    tale = Tale()
    tale.replica("A").heartbeat(last=3)

    assert tale.check().gaps == (Gap("A", 2, 3, tale.facts[0].time_unix_nano, None),)
    assert tale.check().gaps[0].count == 2


def test_each_replica_counts_for_itself() -> None:
    tale = Tale()
    a, b = tale.replica("A"), tale.replica("B")
    for narrator in (a, b, a, b):
        narrator.heartbeat()

    assert check(tale.facts).complete
    assert [gap.replica for gap in check(tale.facts[1:]).gaps] == ["A"]


def test_what_a_part_of_a_history_left_out_is_not_missing() -> None:
    tale = Tale()
    a = tale.replica("A", heartbeats=True)
    left_out = [a.write(c.WORKING, None, 1) for _ in range(3)]
    a.heartbeat()
    kept = [fact for fact in tale.facts if fact not in left_out]
    mark = Fact(id="A:2", kind=c.OMITTED, time_unix_nano=kept[0].time_unix_nano, replica="A", last=4)

    assert not check(kept).complete
    assert check([*kept, mark]).complete
    assert check([mark, *kept]).complete
