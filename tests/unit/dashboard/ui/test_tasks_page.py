"""Tasks, run from the entry as a browser would have it run."""

from __future__ import annotations

import pytest

from a2a_fencing import conventions as c
from a2a_fencing_dashboard.ui import links
from a2a_fencing_dashboard.ui.pages import tasks as tasks_page
from support.pages import everything, texts


def listed(app):
    return list(app.dataframe[0].value["task"].str.extract(r"task=([^&#]*)")[0])


@pytest.fixture
def three_tasks(cluster, stored):
    cluster.overwritten("bad", owner="alice")
    cluster.refusal("held", owner="bob")
    cluster.completed("good", owner="bob")
    stored()


@pytest.mark.parametrize(
    ("query", "tasks"),
    [
        ({}, ["good", "held", "bad"]),
        ({"verdict": ["violated"]}, ["bad"]),
        ({"rule": ["terminal-overwritten"]}, ["bad"]),
        ({"state": ["CANCELED"]}, ["held"]),
        ({"state": ["CANCELED", "COMPLETED"]}, ["good", "held", "bad"]),
        ({"has": ["rejection"]}, ["held"]),
        ({"has": ["conflict"]}, ["held", "bad"]),
        ({"replica": ["api-1"]}, ["held", "bad"]),
        ({"q": "alice"}, ["bad"]),
        ({"sort": "by task id"}, ["bad", "good", "held"]),
        ({"sort": "oldest change first"}, ["bad", "held", "good"]),
        ({"verdict": ["nonsense"]}, ["good", "held", "bad"]),
        ({"run": "load-42"}, ["good", "held", "bad"]),
        ({"run": "another"}, ["good", "held", "bad"]),
    ],
)
def test_the_url_says_which_tasks_are_listed(open_page, three_tasks, query, tasks):
    assert listed(open_page(links.TASKS, **query)) == tasks


def test_a_filter_that_matches_nothing_can_be_cleared(open_page, three_tasks):
    app = open_page(links.TASKS, q="zzz")
    assert "No task matches these filters." in texts(app)
    (button,) = [button for button in app.button if button.label == "Clear the filters"]
    assert listed(button.click().run()) == ["good", "held", "bad"]


def test_a_range_without_tasks_can_be_widened(open_page, three_tasks, cluster, freeze):
    freeze(cluster.now + 3_600_000_000_000)
    app = open_page(links.TASKS, range="last 5 min")
    assert "No task in this run and time range." in texts(app)
    (button,) = [button for button in app.button if button.label == "Show all runs and times"]
    assert len(listed(button.click().run())) == 3


def test_a_long_list_comes_in_pages(open_page, cluster, stored):
    for n in range(60):
        cluster.completed(f"t{n:02}")
    stored()
    app = open_page(links.TASKS, sort="by task id")
    assert "showing 1 to 50 of 60 tasks" in everything(app)
    app = open_page(links.TASKS, sort="by task id", page="2")
    assert listed(app) == [f"t{n}" for n in range(50, 60)]
    assert "showing 51 to 60 of 60 tasks" in everything(app)


def test_choosing_a_filter_leads_back_to_the_first_page(open_page, cluster, stored):
    for n in range(120):
        cluster.completed(f"t{n:03}")
    stored()
    app = open_page(links.TASKS, page="3")
    app.selectbox(key="sort").select("by task id").run()
    assert listed(app)[0] == "t000"


def test_dispatches_after_the_end_are_a_filter(open_page, cluster, stored):
    for name in ("early", "late"):
        task = cluster.task(name)
        task.write(cluster.a, c.WORKING, None, 1)
        if name == "late":
            task.write(cluster.b, c.CANCELED, 1, 2, origin=c.FROM_CANCEL_REMOTE)
            task.read(cluster.a, c.CANCELED, 2)
        attempt = {"dispatch_id": f"{cluster.a.id}/{name}", "phase": c.STARTED}
        task.dispatch(cluster.a, "charge-card", c.UNKNOWN, **attempt)
        task.dispatch(cluster.a, "charge-card", c.ACCEPTED, **attempt | {"phase": c.ENDED})
    stored()
    assert listed(open_page(links.TASKS, has=["dispatch"], sort="by task id")) == ["early", "late"]
    assert listed(open_page(links.TASKS, has=["dispatch after terminal"])) == ["late"]


def test_a_list_of_several_pages_says_what_its_headers_sort(open_page, cluster, stored):
    for n in range(51):
        cluster.completed(f"t{n:02}")
    stored()
    assert "a click on a header these alone" in everything(open_page(links.TASKS))


def test_a_text_too_short_for_the_index_is_counted_to_a_bound(open_page, cluster, stored, monkeypatch):
    monkeypatch.setattr(tasks_page, "_COUNTED_TO", 55)
    for n in range(60):
        cluster.completed(f"t{n:02}")
    stored()
    for page in ("1", "2"):
        app = open_page(links.TASKS, q="t", sort="by task id", page=page)
        assert "of more than 55 tasks" in everything(app)
    assert listed(app) == [f"t{n}" for n in range(50, 60)]
    assert "showing 1 to 50 of 60 tasks" in everything(open_page(links.TASKS, q="alice"))
    assert "10 tasks" in everything(open_page(links.TASKS, q="t5"))
