"""Of a span of ours, an application that traces nothing sees a stand-in with the same ids."""

from __future__ import annotations

from opentelemetry import trace

from a2a_fencing.spans import LightTracer, ambient


def test_a_no_op_tracer_hands_the_stand_in_on_and_cannot_touch_the_span() -> None:
    ended: list[object] = []
    span = LightTracer(ended.append).start_span("execute")
    context = trace.set_span_in_context(ambient(span))
    theirs = trace.NoOpTracer().start_span("sdk", context)
    assert theirs is trace.get_current_span(context)
    theirs.set_attribute("a", 1)
    theirs.end()
    assert theirs.get_span_context() == span.get_span_context()
    assert span.attributes == {}
    assert ended == []


def test_a_span_of_ours_under_the_stand_in_is_under_the_span() -> None:
    tracer = LightTracer(lambda _span: None)
    span = tracer.start_span("execute")
    below = tracer.start_span("save", trace.set_span_in_context(ambient(span)))
    assert below.parent.span_id == span.span_id
    assert below.get_span_context().trace_id == span.get_span_context().trace_id


def test_an_sdks_own_span_stays_itself() -> None:
    assert ambient(trace.INVALID_SPAN) is trace.INVALID_SPAN
