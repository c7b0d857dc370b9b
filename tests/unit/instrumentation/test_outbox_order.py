"""Spans leave behind the facts they recorded, so that a receiver of both never sees a gap between."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from opentelemetry.sdk.resources import Resource

from a2a_fencing import conventions as c
from a2a_fencing.backlog import Backlog
from a2a_fencing.facts import Fact
from a2a_fencing.outbox import BATCH, LOGS_PATH, TRACES_PATH, Outbox
from a2a_fencing.spans import LightTracer


def noted(monkeypatch: pytest.MonkeyPatch, outbox: Outbox) -> list[str]:
    """Which signals the outbox sends from now on; all are taken."""
    sent: list[str] = []

    def deliver(url: str, body: bytes) -> bool:
        sent.append(url.rpartition("/")[2])
        return True

    monkeypatch.setattr(outbox, "_deliver", deliver)
    return sent


def test_spans_go_behind_their_facts_and_what_comes_meanwhile_waits(monkeypatch) -> None:
    outbox = Outbox("http://x" + LOGS_PATH, "http://x" + TRACES_PATH, Resource({}))
    monkeypatch.setattr(outbox, "_start", lambda: None)
    tracer = LightTracer(outbox.take_light_span)
    sent: list[str] = []

    def deliver(url: str, body: bytes) -> bool:
        sent.append(url.rpartition("/")[2])
        if len(sent) == 1:
            record(2)  # while the first facts are on their way
        return True

    def record(n: int) -> None:
        span = tracer.start_span("save")
        outbox.take_fact(Fact(id=f"r:{n}", kind=c.WRITE, time_unix_nano=n, replica="r"), span)
        span.end()

    monkeypatch.setattr(outbox, "_deliver", deliver)
    record(1)
    outbox._send_all()
    assert sent == ["logs", "traces"]
    outbox._send_all()
    assert sent == ["logs", "traces", "logs"]
    outbox.close()


def test_once_facts_are_known_to_be_taken_spans_go_along_at_every_fourth_time(monkeypatch) -> None:
    """Nobody waits for a span, and each request has its price."""
    outbox = Outbox("http://x" + LOGS_PATH, "http://x" + TRACES_PATH, Resource({}))
    monkeypatch.setattr(outbox, "_start", lambda: None)
    tracer = LightTracer(outbox.take_light_span)
    sent = noted(monkeypatch, outbox)
    for n in range(1, 6):
        span = tracer.start_span("save")
        outbox.take_fact(Fact(id=f"r:{n}", kind=c.WRITE, time_unix_nano=n, replica="r"), span)
        span.end()
        outbox._send_all()
    assert sent == ["logs", "traces", "logs", "logs", "logs", "traces", "logs"]
    for _ in range(3):  # nothing new comes: the last span leaves all the same
        outbox._send_all()
    assert sent[7:] == ["traces"]
    outbox.close()


def test_sending_goes_on_while_facts_or_spans_are_a_batch_behind(monkeypatch) -> None:
    """Spans have no facts of their own where an application's pipeline takes these."""
    outbox = Outbox(None, "http://x" + TRACES_PATH, Resource({}))
    monkeypatch.setattr(outbox, "_start", lambda: None)
    tracer = LightTracer(outbox.take_light_span)
    sent = noted(monkeypatch, outbox)
    for _ in range(2 * BATCH + 1):
        tracer.start_span("save").end()
    outbox._send_all()
    assert sent == ["traces", "traces"]
    outbox.close()


@pytest.mark.parametrize(
    "odd", [{"error_type": "\ud800"}, {"version": 1 << 63}, {"token": 1 << 70}, {"version": -(1 << 64)}]
)
def test_a_fact_that_cannot_be_encoded_is_lost_alone(odd: dict[str, Any]) -> None:
    outbox = Outbox("http://x" + LOGS_PATH, "http://x" + TRACES_PATH, Resource({}))
    outbox._start = lambda: None  # type: ignore[method-assign]
    for n, values in enumerate(({}, odd, {}), 1):
        fact = Fact(id=f"r:{n}", kind=c.WRITE, time_unix_nano=n, replica="r", **values)
        with contextlib.suppress(Exception):
            outbox.take_fact(fact, None)
    assert (outbox.lost, len(outbox._facts)) == (1, 2)
    outbox.close()


def test_spans_that_find_no_room_are_not_encoded(monkeypatch: pytest.MonkeyPatch) -> None:
    """An endpoint that stands still must not cost the host more than its room."""
    outbox = Outbox("http://x" + LOGS_PATH, "http://x" + TRACES_PATH, Resource({}), capacity=1)
    monkeypatch.setattr(outbox, "_start", lambda: None)
    encoded: list[str] = []
    monkeypatch.setattr(
        "a2a_fencing.outbox.encode_span", lambda span, events: encoded.append(span.name) or b""
    )
    tracer = LightTracer(outbox.take_light_span)
    for name in ("first", "second"):
        tracer.start_span(name).end()
    assert encoded == ["first"]
    outbox.close()


def test_what_could_not_be_encoded_before_is_not_held_against_a_later_fact(monkeypatch) -> None:
    backlog = Backlog()
    outbox = Outbox("http://x" + LOGS_PATH, None, Resource({}), backlog=backlog)
    monkeypatch.setattr(outbox, "_start", lambda: None)
    backlog.watched = True
    backlog.later(outbox.take_fact, Fact(id="r:1", kind="\ud800", time_unix_nano=1, replica="r"), None)
    confirm = outbox.confirmation()
    assert outbox.lost == 1
    assert confirm(0) is None
    outbox.close()
