"""When a page is drawn anew."""

from __future__ import annotations

import contextlib
import itertools
from types import SimpleNamespace

import pytest

from a2a_fencing_dashboard.ui import live


class Redrawn(Exception):
    """The page is drawn anew."""


@pytest.fixture
def look(monkeypatch):
    """Looks as the timer of a page does, which was drawn with the first of these pulses."""
    state = {}

    def rerun():
        raise Redrawn

    page = SimpleNamespace(
        session_state=state,
        container=lambda **options: contextlib.nullcontext(),
        toggle=lambda *arguments, **options: state.get("paused", False),
        caption=lambda text: None,
        rerun=rerun,
    )
    monkeypatch.setattr(live, "st", page)

    def looks(*pulses, paused=False):
        state["paused"] = paused
        counter = itertools.count()
        for pulse in pulses:
            live._watch(lambda pulse=pulse: pulse, pulses[0], lambda pulse: pulse[1], counter)

    return looks


def test_new_data_wait_for_the_next_drawing(look):
    look((1, 0), (2, 0))
    with pytest.raises(Redrawn):
        look((1, 0), (2, 0), (3, 0))


def test_a_new_violation_does_not_wait(look):
    with pytest.raises(Redrawn):
        look((1, 0), (2, 1))


def test_what_has_not_changed_is_not_drawn_anew(look):
    look(*[(1, 0)] * 9)


def test_a_paused_page_stays_as_it_is(look):
    look((1, 0), (2, 1), (3, 2), paused=True)


def test_a_page_is_not_given_up_while_it_is_drawn(look):
    counter = itertools.count()
    live._watch(lambda: (2, 1), (1, 0), lambda pulse: pulse[1], counter)
