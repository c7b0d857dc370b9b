"""Pages without facts, and pages that follow the data."""

from __future__ import annotations

import itertools

import pytest

from a2a_fencing_dashboard.ui import links, live
from a2a_fencing_dashboard.ui.app import PAGES
from a2a_fencing_dashboard.ui.queries import Queries
from a2a_fencing_dashboard.ui.settings import Settings
from support.pages import everything, texts


@pytest.mark.parametrize("page", [name for name, entry in PAGES.items() if entry.needs_facts])
def test_without_facts_every_page_says_how_to_get_some(open_page, store, page):
    app = open_page(page)
    assert "No replica has reported yet." in texts(app)
    assert [code.value for code in app.code] == [
        "import a2a_fencing\n\na2a_fencing.instrument()",
        "a2a-fencing demo",
    ]


def test_without_facts_the_receiver_is_named(open_page, store, store_url):
    app = open_page(links.OVERVIEW, Settings(store_url, receiver_url="http://127.0.0.1:4318"))
    assert any("http://127.0.0.1:4318" in text for text in texts(app))


@pytest.mark.parametrize("page", list(PAGES))
def test_a_store_that_does_not_answer_is_told_in_one_line(open_page, tmp_path, page):
    (tmp_path / "other.db").write_text("not a store, but long enough to be looked at as one" * 9)
    app = open_page(page, Settings(f"sqlite:///{tmp_path / 'other.db'}"))
    assert "The store does not answer." in everything(app)
    assert any("other.db" in text for text in texts(app))


def test_new_data_is_drawn_and_a_paused_page_stays(open_page, cluster, store, stored):
    cluster.completed("first")
    stored()
    app = open_page()
    assert "No violation in 1 task." in texts(app)
    cluster.completed("second")
    cluster.commit(store)
    assert "No violation in 2 tasks." in texts(app.run())
    assert [toggle.label for toggle in app.toggle] == ["Pause"]
    paused = app.toggle[0].set_value(True).run()
    assert "paused, nothing new" in [caption.value for caption in paused.caption]


def test_a_page_is_drawn_to_its_end_however_fast_facts_arrive(open_page, cluster, stored, monkeypatch):
    cluster.completed()
    stored()
    versions = itertools.count(1)
    monkeypatch.setattr(Queries, "version", lambda self: next(versions))
    assert "No violation in 1 task." in texts(open_page())
    assert next(versions) < 10


def test_a_pulse_is_nothing_while_the_store_cannot_be_read():
    def broken():
        raise live.StoreError("gone")

    assert live.beat(broken) is None
    assert live.beat(lambda: (1,)) == (1,)


def test_a_page_that_fails_says_that_the_others_do_not(open_page, cluster, stored, monkeypatch):
    cluster.completed()
    stored()

    def broken(*_):
        raise ValueError("<b>broken</b>")

    monkeypatch.setattr(Queries, "_overview", broken)
    with pytest.raises(AssertionError):
        open_page()
    monkeypatch.undo()


def test_a_run_that_has_fallen_silent_says_where_to_look(open_page, cluster, stored, freeze):
    cluster.completed()
    stored()
    assert "No replica has reported since" not in everything(open_page())
    freeze(cluster.now + 3_600_000_000_000)
    app = open_page()
    assert "No replica has reported since" in everything(app)
    assert "a2a-fencing doctor" in [code.value for code in app.code]
