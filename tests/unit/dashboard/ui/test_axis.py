from __future__ import annotations

from a2a_fencing_dashboard.ui.charts.axis import by_order, to_scale

MS = 1_000_000


def test_each_fact_takes_one_step_however_short():
    axis = by_order([0, 1, 2, 3 * MS])
    assert axis.positions == (0, 1, 2, 3)
    assert axis.idle == ()


def test_an_idle_stretch_is_collapsed_and_says_how_long_it_was():
    axis = by_order([0, MS, 2 * MS, 4_202 * MS, 4_203 * MS])
    assert axis.positions == (0, 1, 2, 4, 5)
    (idle,) = axis.idle
    assert idle.label == "4.2 s"
    assert 2 < idle.start < idle.end < 4


def test_a_slow_but_steady_task_is_not_idle():
    assert by_order([n * 1_000 * MS for n in range(6)]).idle == ()


def test_to_scale_is_milliseconds():
    axis = to_scale([5 * MS, 6 * MS, 105 * MS])
    assert axis.positions == (0, 1, 100)
    assert axis.start < 0 < 100 < axis.end


def test_ticks_are_few_and_begin_at_zero():
    axis = by_order([n * MS for n in range(500)])
    assert axis.ticks[0] == (0, "0")
    assert len(axis.ticks) <= 9


def test_one_fact_and_none():
    assert by_order([7]).positions == (0,)
    assert to_scale([7]).positions == (0,)
    assert by_order([]).positions == to_scale([]).positions == ()
