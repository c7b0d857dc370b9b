"""What one replica saw of another bounds how far their clocks are apart, and nothing else does."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from a2a_fencing import conventions as c
from a2a_fencing.checker.clocks import Clocks
from a2a_fencing.facts import Fact
from support.tale import MS


def fact(replica: str, time: int, duration: int = 0) -> Fact:
    return Fact(
        id=f"{replica}:1", kind=c.WRITE, time_unix_nano=time, replica=replica, duration_ns=duration
    )


def test_unmeasured_clocks_order_nothing() -> None:
    assert not Clocks().before(fact("A", 0), fact("B", 10**18))
    assert Clocks().skew("A", "B") is None


def test_what_was_seen_bounds_the_difference() -> None:
    clocks = Clocks()
    clocks.saw("task", fact("A", 100 * MS), fact("B", 130 * MS))

    assert clocks.before(fact("A", 200 * MS), fact("B", 231 * MS))
    assert not clocks.before(fact("A", 200 * MS), fact("B", 230 * MS))
    assert not clocks.before(fact("B", 0), fact("A", 10**18))  # nothing was seen that way
    assert clocks.skew("A", "B") == 50 * MS


def test_a_write_may_have_been_committed_as_soon_as_it_began() -> None:
    clocks = Clocks()
    clocks.saw("task", fact("A", 100 * MS, duration=20 * MS), fact("B", 130 * MS))

    assert not clocks.before(fact("A", 200 * MS), fact("B", 249 * MS))
    assert clocks.before(fact("A", 200 * MS), fact("B", 251 * MS))
    assert not clocks.before(fact("A", 200 * MS), fact("B", 255 * MS, duration=5 * MS))


def test_the_tightest_bound_holds_until_its_task_is_withdrawn() -> None:
    clocks = Clocks()
    assert clocks.saw("one", fact("A", 0), fact("B", 50 * MS))
    assert clocks.saw("two", fact("A", 0), fact("B", 20 * MS))
    assert not clocks.saw("three", fact("A", 0), fact("B", 30 * MS))
    assert clocks.skew("A", "B") == 20 * MS

    assert clocks.withdraw("two")
    assert clocks.skew("A", "B") == 50 * MS  # 30 ms, rounded up
    clocks.keep("three")
    assert not clocks.withdraw("three")
    assert clocks.skew("A", "B") == 50 * MS


@given(
    st.integers(-(10**12), 10**12),
    st.lists(st.tuples(st.booleans(), st.integers(0, 10**12), st.integers(0, 10**9)), max_size=20),
    st.integers(0, 10**12),
    st.integers(0, 10**12),
)
def test_no_order_is_told_that_did_not_happen(
    ahead: int, seen: list[tuple[bool, int, int]], one: int, other: int
) -> None:
    """B's clock is `ahead`; messages take time; whatever order is claimed is the true one."""
    clocks = Clocks()
    for from_a, sent, took in seen:
        cause = fact("A", sent) if from_a else fact("B", sent + ahead)
        effect = fact("B", sent + took + ahead) if from_a else fact("A", sent + took)
        clocks.saw("task", cause, effect)

    if clocks.before(fact("A", one), fact("B", other + ahead)):
        assert one < other
    if clocks.before(fact("B", other + ahead), fact("A", one)):
        assert other < one
