"""History files in the dashboard, run from the entry as a browser would have it run."""

from __future__ import annotations

import pytest

from a2a_fencing_dashboard.exports.excerpt import of_run, of_task
from a2a_fencing_dashboard.exports.formats import FORMATS
from a2a_fencing_dashboard.ui import links, sources
from a2a_fencing_dashboard.ui.settings import Settings
from support.pages import everything, task_query, texts
from support.reports import Cluster


@pytest.fixture
def exported(cluster, stored, store):
    """A file with an overwritten task, and what the live store holds of it."""
    task = cluster.overwritten()
    stored()
    return task, FORMATS["otlp"].write(of_task(store, task.key, 1_000))


def upload(app, name, content):
    return app.file_uploader[0].upload(name, content).run()


def tables(app):
    return [frame.value.to_dict() for frame in app.dataframe]


def figures(app):
    return [chart.proto.spec for chart in app.get("plotly_chart")]


def test_an_uploaded_history_is_listed_and_can_be_closed(open_page, exported):
    app = upload(open_page(links.FILES), "task.jsonl", exported[1])
    assert "task.jsonl (1)" in texts(app)
    next(button for button in app.button if button.label == "Close").click().run()
    assert "task.jsonl (1)" not in texts(app)
    assert not app.exception


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"dear diary", "diary.txt: JSON is malformed"),
        (b'{"resourceLogs": []}', "diary.txt: no facts of a2a-fencing here"),
        (b"SQLite format 3\x00" + b"\x01" * 200, "diary.txt: file is not a database"),
    ],
)
def test_a_bad_file_is_one_clear_message(open_page, exported, content, said):
    app = upload(open_page(links.FILES), "diary.txt", content)
    assert not app.exception
    assert "This file cannot be opened." in everything(app)
    (message,) = [text for text in texts(app) if "diary.txt" in text]
    assert said in message
    assert "\n" not in message
    assert not sources.sources().all()


def test_a_hostile_name_is_text(open_page, exported):
    hostile = "![x](http:~evil~y)<b>.jsonl"
    app = upload(open_page(links.FILES), hostile, exported[1])
    assert f"{hostile} (1)" in texts(app)
    app = open_page(links.OVERVIEW, source=f"{hostile} (1)")
    assert hostile in texts(app)
    for element in (*app.markdown, *app.caption):
        assert "evil" not in element.value


def test_the_exported_task_has_the_same_page(open_page, exported):
    task, content = exported
    live = open_page(links.TASK, **task_query(task))
    upload(open_page(links.FILES), "task.jsonl", content)
    again = open_page(links.TASK, source="task.jsonl (1)", **task_query(task))
    assert "History file, not live" in everything(again)
    assert "History file, not live" not in everything(live)
    assert tables(again) == tables(live)
    assert figures(again) == figures(live)
    assert [text for text in texts(again) if "task.jsonl" not in text] == texts(live)


def test_an_opened_run_has_the_same_overview(open_page, exported, store):
    live = open_page(links.OVERVIEW)
    content = FORMATS["otlp"].write(of_run(store, "load-42", None))
    upload(open_page(links.FILES), "run.jsonl", content)
    again = open_page(links.OVERVIEW, source="run.jsonl (1)")
    assert [text for text in texts(again) if text != "run.jsonl"] == texts(live)


def test_the_runs_are_those_of_the_source(open_page, exported, cluster, store):
    upload(open_page(links.FILES), "task.jsonl", exported[1])
    other = Cluster("later")
    other.a, other.b = other.replica("api-0", "a2"), other.replica("api-1", "b2")
    other.completed("t9")
    other.heartbeats()
    other.commit(store)
    app = open_page(links.RUNS)
    assert {"A: load-42", "B: later"} <= set(texts(app))
    app.selectbox(key="a").select("later").run()
    app.selectbox(key=sources.SOURCE).select("task.jsonl (1)").run()
    assert not app.exception
    assert "A: load-42" in texts(app)


def test_what_is_live_stays_apart(open_page, exported, store):
    before = store.data_version()
    upload(open_page(links.FILES), "task.jsonl", exported[1])
    assert store.data_version() == before


def test_a_link_to_a_history_that_is_closed_shows_nothing_else(open_page, exported):
    app = open_page(links.OVERVIEW, source="gone.jsonl (9)")
    assert "The history file of this link is not open here any more." in texts(app)
    assert not app.dataframe
    next(button for button in app.button if button.label == "Show what arrives live").click().run()
    assert app.dataframe


def test_one_can_be_opened_while_nothing_has_arrived(open_page, store):
    app = open_page(links.FILES)
    assert app.file_uploader


def test_a_dashboard_of_a_file_says_so(open_page, exported, store_url):
    app = open_page(links.OVERVIEW, Settings(store_url, history="run.jsonl"))
    assert "History file, not live" in everything(app)
    assert "run.jsonl" in texts(app)


def test_everything_can_be_taken_along(open_page, exported):
    app = open_page(links.FILES)
    assert {button.label for button in app.get("download_button")} == {
        form.title for form in FORMATS.values()
    }
    assert "13 facts" in texts(app)
