"""Files that the pages offer; making one is tested with the exports and in a browser."""

from __future__ import annotations

import pytest

from a2a_fencing_dashboard.exports.excerpt import Excerpt
from a2a_fencing_dashboard.exports.formats import FORMATS
from a2a_fencing_dashboard.ui import exporting, links
from support.pages import task_query, texts


@pytest.fixture
def not_asked(monkeypatch):
    """Fails where a page makes a file that nobody asked for."""

    def made(*arguments):
        raise AssertionError("a file was made unasked")

    monkeypatch.setattr(exporting, "_made", made)


def buttons(app):
    return {button.label: button for button in app.get("download_button")}


def test_a_task_is_offered_in_every_format(open_page, cluster, stored, not_asked):
    task = cluster.overwritten()
    stored()
    app = open_page(links.TASK, **task_query(task))
    assert buttons(app).keys() == {form.title for form in FORMATS.values()}
    assert "11 facts" in texts(app)


def test_a_run_is_offered(open_page, cluster, stored, not_asked):
    cluster.overwritten()
    stored()
    app = open_page(links.RUNS)
    assert len(app.get("download_button")) == len(FORMATS)


def test_a_part_is_called_one_and_has_no_report(open_page, cluster, stored, monkeypatch):
    cluster.overwritten()
    stored()
    monkeypatch.setattr(exporting, "MOST_FACTS", 5)
    app = open_page(links.RUNS)
    assert "5 of 13 facts" in texts(app)
    assert {label: button.proto.disabled for label, button in buttons(app).items()} == {
        "Report": True,
        "OTLP JSON lines": False,
        "CSV": False,
        "Parquet": False,
    }


def test_what_is_made_is_what_was_asked_for():
    excerpts = iter([Excerpt("one", ())])
    assert exporting._made(FORMATS["otlp"], lambda: next(excerpts)) == b""
