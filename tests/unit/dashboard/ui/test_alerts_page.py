"""Alerts, run from the entry as a browser would have it run."""

from __future__ import annotations

from a2a_fencing import conventions as c
from a2a_fencing_dashboard.ui import links
from support.pages import everything, texts


def test_alerts_are_grouped_by_task_newest_first(open_page, cluster, stored):
    for task_id in ("older", "newer"):
        cluster.overwritten(task_id)
        stored()
    app = open_page(links.ALERTS)
    tasks = [text for text in texts(app) if text in ("older", "newer")]
    assert tasks == ["newer", "older"]
    assert texts(app).count(c.TERMINAL_OVERWRITTEN) == 2
    assert "proven" in everything(app)
    assert "critical" in everything(app)


def test_alerts_follow_the_url(open_page, cluster, stored):
    cluster.overwritten()
    stored()
    app = open_page(links.ALERTS, rule=[c.ANSWER_CONTRADICTED])
    assert c.ANSWER_CONTRADICTED in texts(app)
    assert c.TERMINAL_OVERWRITTEN not in texts(app)
    app = open_page(links.ALERTS, severity=["info"])
    assert c.TERMINAL_OVERWRITTEN not in texts(app)


def test_no_alert_is_good_news_that_says_what_it_covers(open_page, cluster, stored):
    cluster.completed()
    stored()
    assert "No rule was broken in this run and time range." in texts(open_page(links.ALERTS))


def test_an_alert_shows_all_that_is_wrong_with_its_task(open_page, cluster, stored):
    cluster.overwritten()
    stored()
    told = texts(open_page(links.ALERTS))
    rules = [text for text in told if text in c.RULES]
    assert rules[:2] == [c.TERMINAL_OVERWRITTEN, c.ANSWER_CONTRADICTED]
    assert sum("was overwritten by" in text for text in told) == 1
