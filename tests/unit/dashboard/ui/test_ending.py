"""A page that is still being drawn when the dashboard ends."""

from __future__ import annotations

from dataclasses import replace

import pytest

from a2a_fencing_dashboard.ui import app as entry
from a2a_fencing_dashboard.ui import links
from a2a_fencing_dashboard.ui.ending import ENDED


@pytest.fixture
def refusing(monkeypatch, cluster, stored):
    """The overview, which fails as it does once executors take nothing more."""

    def refused():
        raise RuntimeError("cannot schedule new futures after interpreter shutdown")

    cluster.completed()
    stored()
    page = replace(entry.PAGES[links.OVERVIEW], render=refused)
    monkeypatch.setattr(entry, "PAGES", {**entry.PAGES, links.OVERVIEW: page})
    monkeypatch.setattr(entry, "_told", [])
    told = []
    monkeypatch.setattr(entry.parts, "failed", told.append)
    return told


@pytest.fixture
def ended():
    ENDED.set()
    yield
    ENDED.clear()


def logged(caplog):
    return [record.getMessage() for record in caplog.records if record.name == entry.__name__]


def test_a_page_that_fails_is_logged_once(open_page, refusing, caplog):
    open_page().run()
    assert logged(caplog) == ["a page could not be drawn"]
    assert len(refusing) == 2


def test_one_that_fails_because_the_dashboard_ends_is_not(open_page, refusing, ended, caplog):
    open_page()
    assert logged(caplog) == refusing == []
