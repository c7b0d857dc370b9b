"""The timeline as a figure: what is where, and that hostile text stays text."""

from __future__ import annotations

import pytest

from a2a_fencing import conventions as c
from a2a_fencing_dashboard.ui import palette
from a2a_fencing_dashboard.ui.charts import marks
from a2a_fencing_dashboard.ui.charts.schedule import schedule
from a2a_fencing_dashboard.ui.charts.timeline import timeline


@pytest.fixture
def names(cluster):
    return {cluster.a.id: "api-0", cluster.b.id: "api-1"}


@pytest.fixture
def draw(cluster, names):
    def drawn(broke=(), **options):
        return timeline(schedule(cluster.facts), set(broke), names, **options)

    return drawn


def trace(figure, name):
    (found,) = [trace for trace in figure.data if trace.name == name]
    return found


def segments(figure):
    """What the store held, by time: start, length, text, and hatching of each segment."""
    return sorted(
        (start, length, text, bar.marker.pattern.shape)
        for bar in figure.data
        if bar.type == "bar" and bar.text
        for start, length, text in zip(bar.base, bar.x, bar.text, strict=True)
    )


def test_lanes_from_top_to_bottom(cluster, draw):
    cluster.overwritten()
    assert draw().layout.yaxis.ticktext == ("clients", "store", "api-0", "api-1")
    cluster.task("t").dispatch(cluster.a, "charge-card", c.ACCEPTED)
    assert draw().layout.yaxis.ticktext[-1] == "dispatches"


def test_two_writers_of_one_process_have_a_lane_each(cluster, draw):
    task = cluster.task("t")
    task.write(cluster.a, c.WORKING, None, 1, writer=f"{cluster.a.id}/1")
    task.write(cluster.a, c.CANCELED, 1, 2, writer=f"{cluster.a.id}/2")
    task.execution(cluster.a, c.STARTED)
    assert draw().layout.yaxis.ticktext == ("store", "api-0 /1", "api-0 /2")


def test_the_store_lane_holds_each_state_until_the_next(cluster, draw):
    cluster.overwritten()
    held = segments(draw())
    assert [text.split(" ", 1)[1] for _, _, text, _ in held] == [
        "v1 SUBMITTED",
        "v2 WORKING",
        "v3 CANCELED",
        "v4 COMPLETED",
    ]
    ends = [start + length for start, length, *_ in held]
    assert [start for start, *_ in held[1:]] == ends[:-1]
    assert [shape for *_, shape in held] == ["", "", "/", "/"]


def test_a_segment_has_the_colour_of_its_state(cluster, draw):
    cluster.overwritten()
    bars = [bar for bar in draw().data if bar.type == "bar" and bar.text]
    # One colour a trace: of a list of them beside a pattern, Plotly complains in the console.
    assert [bar.marker.color for bar in bars] == [
        palette.STATES[state].color for state in (c.SUBMITTED, c.WORKING, c.CANCELED, c.COMPLETED)
    ]


def test_every_fact_is_marked_in_the_lane_of_its_replica(cluster, draw):
    cluster.overwritten()
    figure = draw()
    assert list(trace(figure, marks.WRITTEN).y) == [-2, -2, -3, -2]
    assert list(trace(figure, marks.WRITTEN).text) == ["v1", "v2", "v3", "v4"]
    assert list(trace(figure, marks.CONFLICT).y) == [-2]
    assert list(trace(figure, marks.DROPPED).y) == [-2]
    assert list(trace(figure, marks.TOLD).y) == [0, 0]
    marked = {fact_id for t in figure.data if t.customdata is not None for fact_id in t.customdata}
    executions = {fact.id for fact in cluster.facts if fact.kind == c.EXECUTION}
    assert marked - executions == {fact.id for fact in cluster.facts} - executions


def test_the_offence_is_crossed_out_on_a_line_through_all_lanes(cluster, draw):
    cluster.overwritten()
    (offence,) = [fact for fact in cluster.facts if fact.version == 4]
    figure = draw({offence.id})
    (x,) = trace(figure, marks.BROKE).x
    lines = [s for s in figure.layout.shapes if s.line.color == palette.VIOLATION.color]
    assert [(line.x0, line.x1, line.yref) for line in lines] == [(x, x, "paper")]
    assert "broke a rule" not in [t.name for t in draw().data]


def test_a_refused_write_points_at_the_write_it_lost_to(cluster, draw):
    cluster.overwritten()
    figure = draw()
    (arrow,) = [a for a in figure.layout.annotations if a.showarrow]
    assert (arrow.ax, arrow.ay) == (trace(figure, marks.CONFLICT).x[0], -2)
    assert (arrow.x, arrow.y) == (trace(figure, marks.WRITTEN).x[2], -3)


def test_words_stay_clear_of_arrows(cluster, draw):
    cluster.overwritten()
    figure = draw()
    for group in (marks.CONFLICT, marks.DROPPED):  # the lane that the arrow leaves downwards
        assert set(trace(figure, group).textposition) == {"top center"}
    written = trace(figure, marks.WRITTEN)
    sides = dict(zip(written.y, written.textposition, strict=True))
    assert sides == {-2: "top center", -3: "bottom center"}


def test_a_shield_marks_what_held(cluster, draw):
    cluster.refusal()
    held = trace(draw(), marks.REJECTED)
    assert held.marker.symbol == (palette.HELD.shape,)
    assert [abs(angle) for angle in held.marker.angle] == [180]


def test_a_band_runs_where_the_task_was_finished(cluster, draw):
    cluster.overwritten()
    figure = draw()
    bands = [shape for shape in figure.layout.shapes if shape.type == "rect"]
    assert [(b.x0, b.x1) for b in bands] == [(segments(figure)[2][0], figure.layout.xaxis.range[1])]


def test_a_band_ends_where_a_task_comes_back_to_life(cluster, draw):
    task = cluster.task("t")
    for n, state in enumerate((c.WORKING, c.CANCELED, c.WORKING, c.FAILED)):
        task.write(cluster.a, state, n or None, n + 1)
    figure = draw()
    starts = [start for start, *_ in segments(figure)]
    bands = [shape for shape in figure.layout.shapes if shape.type == "rect"]
    assert [(b.x0, b.x1) for b in bands] == [
        (starts[1], starts[2]),
        (starts[3], figure.layout.xaxis.range[1]),
    ]


def test_an_execution_that_still_runs_is_open_ended(cluster, draw):
    task = cluster.task("t")
    task.execution(cluster.a, c.STARTED, name="done")
    task.execution(cluster.a, c.FINISHED, name="done")
    task.execution(cluster.a, c.STARTED, name="running")
    figure = draw()
    bars = trace(figure, "execution")
    assert bars.marker.pattern.shape == ("", ".")
    assert bars.base[1] + bars.x[1] == figure.layout.xaxis.range[1]
    assert "still executing" in bars.hovertext[1]


def test_an_execution_whose_start_is_missing_begins_at_the_edge(cluster, draw):
    task = cluster.task("t")
    task.write(cluster.a, c.WORKING, None, 1)
    task.execution(cluster.a, c.FINISHED)
    figure = draw()
    assert trace(figure, "execution").base[0] == figure.layout.xaxis.range[0]


def test_to_scale_keeps_the_facts_and_moves_them(cluster, draw):
    cluster.overwritten()
    by_order, scaled = draw(), draw(scaled=True)
    assert trace(scaled, marks.WRITTEN).customdata == trace(by_order, marks.WRITTEN).customdata
    assert list(trace(scaled, marks.WRITTEN).x) == [0, 13, 143, 189]


def test_the_same_facts_give_the_same_figure(cluster, draw):
    cluster.overwritten()
    assert draw().to_json() == draw().to_json()


def test_words_beside_the_marks_end_where_room_does(cluster, draw):
    task = cluster.task("t")
    for n in range(60):
        task.write(cluster.a, c.WORKING, n or None, n + 1)
    assert trace(draw(), marks.WRITTEN).mode == "markers"


HOSTILE = [
    "<b>bold</b><img src=x onerror=alert(1)>",
    '<a href="javascript:alert(1)">x</a>',
    "$\\frac{a}{b}$",
    "%{x} %{customdata}",
    "\u202egnp.exe\x00",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_stays_text(cluster, text):
    cluster.a.id = f"{text}-0000-0001"
    task = cluster.task(text, owner=text)
    task.write(cluster.a, text, None, text, writer=None)
    task.refused(cluster.a, text, text, reason=text, event_kind=text, writer=None)
    task.dropped(cluster.a, reason=text, event_kind=text)
    task.dispatch(cluster.a, text, text)
    task.answer(cluster.a, text, method=text, ending=text)
    task.execution(cluster.a, text)
    figure = timeline(schedule(cluster.facts), {cluster.facts[0].id}, {cluster.a.id: text})
    drawn = [*figure.layout.yaxis.ticktext]
    for t in figure.data:
        drawn += [*(t.text or ()), *(t.hovertext or ())]
        assert t.hovertemplate is None
        assert t.texttemplate is None
    ours = ("<br>", "<i>", "</i>", "<b>broke a rule</b>")
    for line in drawn:
        for tag in ours:
            line = line.replace(tag, "")
        assert "<" not in line
        assert ">" not in line
        assert "$" not in line
        assert "\u202e" not in line
        assert "\x00" not in line


def test_dispatches_say_what_was_tried_how_it_ended_and_under_which_token(cluster, draw):
    task = cluster.task("t")
    attempt = {"dispatch_id": "d1", "attempt": 2, "token": 3}
    task.dispatch(cluster.a, "charge-card", None, **attempt | {"phase": c.STARTED})
    task.dispatch(cluster.a, "charge-card", c.DISPATCH_REJECTED, **attempt)
    pending = task.dispatch(cluster.a, "notify", None, phase=c.STARTED, dispatch_id="d2")
    figure = draw()
    assert list(trace(figure, marks.DISPATCHED).text) == [
        "charge-card #2<br>rejected · token 3",
        "notify #1<br>pending · token 1",
    ]
    (bars,) = [drawn for drawn in figure.data if drawn.type == "bar"]
    assert list(bars.marker.pattern.shape) == ["", "."]
    assert bars.customdata[1] == pending.id


@pytest.mark.parametrize("says", [c.ACCEPTED, None])
@pytest.mark.parametrize("ahead", [False, True], ids=["after", "before, by its clock"])
def test_a_resource_ends_an_attempt_that_its_executor_says_nothing_more_of(cluster, draw, says, ahead):
    task = cluster.task("t")
    attempt = {"dispatch_id": "d1", "attempt": 1}

    def answer():
        return task.dispatch(cluster.b, "payments", c.ACCEPTED, origin=c.FROM_RESOURCE, **attempt)

    answered = answer() if ahead else None
    task.dispatch(cluster.a, "charge-card", None, **attempt | {"phase": c.STARTED})
    answered = answered or answer()
    own = task.dispatch(cluster.a, "charge-card", says, **attempt) if says else None
    bars = [drawn for drawn in draw().data if drawn.type == "bar"]
    shapes = [list(drawn.marker.pattern.shape) for drawn in bars]
    assert shapes == ([] if ahead and not says else [[""]])  # never dotted, as if it went on
    for drawn in bars:
        assert list(drawn.customdata) == [(own or answered).id]


def test_a_resource_has_no_lane_of_its_own(cluster, draw):
    task = cluster.task("t")
    task.dispatch(cluster.a, "charge-card", None, phase=c.STARTED, dispatch_id="d1")
    task.dispatch(cluster.b, "payments", c.ACCEPTED, origin=c.FROM_RESOURCE, dispatch_id="d1")
    assert len(draw().layout.yaxis.ticktext) == 2
    assert draw().layout.yaxis.ticktext[-1] == "dispatches"


def test_what_is_not_clicked_on_stays_as_it_is(cluster, draw):
    cluster.overwritten()
    for drawn in draw().data:
        assert drawn.unselected.marker.opacity == 1, drawn.name
