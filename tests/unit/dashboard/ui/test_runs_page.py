"""Runs, run from the entry as a browser would have it run."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from a2a_fencing import conventions as c
from a2a_fencing_dashboard.ui import links
from support.pages import everything, texts
from support.reports import Cluster


def cluster_of(run: str) -> Cluster:
    """A cluster with replicas of its own, so that several fit into one store."""
    made = Cluster(run)
    made.a = made.replica("api-0", f"a of {run}")
    made.b = made.replica("api-1", f"b of {run}")
    return made


@pytest.fixture
def two_runs(store, freeze):
    bare, guarded = cluster_of("bare"), cluster_of("guarded")
    bare.overwritten("t1")
    bare.completed("t2")
    bare.heartbeats()
    bare.commit(store)
    guarded.now = bare.now
    guarded.refusal("t3")
    guarded.a.heartbeat(guard=True)
    guarded.b.heartbeat(guard=True)
    guarded.commit(store)
    freeze(guarded.now)


def table(app, key):
    (found,) = [frame for frame in app.dataframe if key in frame.value.columns]
    return found.value


def compared(app):
    rows = table(app, "difference")
    before, after = rows.columns[2:4]
    return {
        row["figure"]: (cell(row[before]), cell(row[after]), row["that is"])
        for _, row in rows[::-1].iterrows()
    }


def cell(link):
    """What a table shows of a link."""
    (shown,) = re.search(links.CELL, link).groups()
    return unquote(shown)


def test_the_two_newest_runs_are_compared(open_page, two_runs):
    app = open_page(links.RUNS)
    assert {"A: bare", "B: guarded"} <= set(texts(app))
    assert list(table(app, "difference").columns[2:4]) == ["A · guard off", "B · guard on"]
    figures = compared(app)
    assert figures[c.TERMINAL_OVERWRITTEN] == ("1", "0", "✓ better")
    assert figures["terminal rejections"] == ("0", "1", "")
    assert figures["tasks"][:2] == ("2", "1")
    assert "Violated" in everything(app)
    assert "Fine" in everything(app)
    assert "±4%" in everything(app)


@pytest.mark.parametrize(
    ("figure", "tasks"),
    [
        ("tasks", 2),
        ("finished tasks", 2),
        ("violated tasks", 1),
        (c.TERMINAL_OVERWRITTEN, 1),
        ("stale-base conflicts", 1),
        ("terminal rejections", 0),
    ],
)
def test_a_figure_leads_to_the_tasks_behind_it(open_page, two_runs, figure, tasks):
    rows = table(open_page(links.RUNS, range="last 5 min"), "difference")
    (link, *_) = rows[rows["figure"] == figure].iloc[:, 2]
    url = urlsplit(link)
    assert url.path == f"/{links.TASKS}"
    listed = open_page(links.TASKS, **parse_qs(url.query))
    assert sum(len(frame.value) for frame in listed.dataframe) == tasks


def test_a_figure_of_no_tasks_leads_to_the_overview_of_its_run(open_page, two_runs):
    rows = table(open_page(links.RUNS), "difference")
    (link,) = rows[rows["figure"] == "writes"].iloc[:, 3]
    url = urlsplit(link)
    assert (url.path, parse_qs(url.query)) == ("/", {"run": ["guarded"]})


def test_the_list_has_the_newest_run_first(open_page, two_runs):
    rows = table(open_page(links.RUNS), "run")
    assert list(rows["run"]) == ["guarded", "bare"]
    assert list(rows["guard"]) == ["on", "off"]
    assert list(rows["verdict"]) == ["✓ Fine", "✖ Violated"]


def test_a_link_names_the_runs(open_page, two_runs):
    app = open_page(links.RUNS, a="guarded", b="bare")
    assert compared(app)[c.TERMINAL_OVERWRITTEN] == ("0", "1", "✖ worse")
    assert app.query_params["a"] == "guarded"


def test_what_is_shown_unasked_is_in_the_url_too(open_page, two_runs):
    app = open_page(links.RUNS)
    assert (app.query_params["a"], app.query_params["b"]) == ("bare", "guarded")


def test_a_link_to_a_run_that_is_gone_shows_the_newest(open_page, two_runs):
    app = open_page(links.RUNS, a="gone", b="guarded")
    assert {"A: bare", "B: guarded"} <= set(texts(app))


def test_the_runs_can_be_swapped(open_page, two_runs):
    app = open_page(links.RUNS)
    next(button for button in app.button if button.label == "Swap").click().run()
    assert {"A: guarded", "B: bare"} <= set(texts(app))


def test_one_run_is_shown_alone(open_page, cluster, stored):
    cluster.completed()
    stored()
    app = open_page(links.RUNS)
    assert list(table(app, "run")["run"]) == ["load-42"]
    assert list(table(app, "figure").columns) == ["about", "figure", "A · guard off"]
    assert [box.label for box in app.selectbox if "run" in box.label] == ["First run"]


def test_without_a_label_there_is_no_run(open_page, cluster, stored):
    cluster.run = None
    cluster.completed()
    stored()
    app = open_page(links.RUNS)
    assert "No replica has said which run it belongs to." in texts(app)
    assert any("A2A_FENCING_RUN" in code.value for code in app.code)


def test_a_hostile_label_is_text(open_page, cluster, stored):
    hostile = "![x](http://evil/y) <b>:red[z]</b>"
    cluster.run = hostile
    cluster.completed()
    stored()
    app = open_page(links.RUNS)
    assert f"A: {hostile}" in texts(app)
    for element in (*app.markdown, *app.caption):
        assert "evil" not in element.value
