"""Task, run from the entry as a browser would have it run."""

from __future__ import annotations

import pytest

from a2a_fencing import conventions as c
from a2a_fencing_dashboard.store.protocol import Span
from a2a_fencing_dashboard.ui import detail, links
from a2a_fencing_dashboard.ui.settings import Settings
from support.pages import everything, task_query, texts
from support.reports import START


def test_a_deep_link_shows_the_task_and_tells_its_violation(open_page, cluster, stored):
    task = cluster.overwritten()
    stored()
    app = open_page(links.TASK, **task_query(task))
    assert texts(app)[0] == task.key.task_id
    for value in ("■ COMPLETED", "v4", "alice", "91ab77de", "tasks @ postgresql", "load-42"):
        assert value in texts(app)
    assert "**Violated**" in everything(app)
    assert "proven" in everything(app)
    story = "\n".join(texts(app))
    assert "api-1 wrote CANCELED on v2, which became v3 (cancel-remote)." in story
    assert "api-0's artifact-update on v2 was refused: another writer was first (stale-base)." in story
    assert "api-0 wrote COMPLETED on v3, which became v4." in story
    assert len(app.get("plotly_chart")) == 1
    table = app.dataframe[0].value
    assert len(table) == 11
    assert (
        table[table["base → version"] == "v3 → v4"]["broken rule"]
        .str.contains(c.TERMINAL_OVERWRITTEN)
        .all()
    )


def test_a_fine_task_says_so(open_page, cluster, stored):
    task = cluster.completed()
    stored()
    app = open_page(links.TASK, **task_query(task))
    assert "No rule was broken." in texts(app)
    assert "**Fine**" in everything(app)


def test_a_task_with_missing_facts_is_not_called_fine(open_page, cluster, stored):
    task = cluster.completed()
    stored(without=[fact for fact in cluster.facts if fact.version == 2])
    app = open_page(links.TASK, **task_query(task))
    assert "**Unknown**" in everything(app)


def test_violated_tasks_lead_to_one_another(open_page, cluster, stored):
    older, newer = cluster.overwritten("older"), cluster.overwritten("newer")
    stored()
    app = open_page(links.TASK, **task_query(newer))
    assert "violated: 1 of 2" in everything(app)
    steps = {link.proto.label: link.proto for link in app.get("page_link")}
    assert steps["Newer"].disabled
    assert f"task={older.key.task_id}" in steps["Older"].query_string


@pytest.mark.parametrize("query", [{}, {"task": "nope"}, {"task": "nope", "owner": "o", "store": "s"}])
def test_a_link_to_no_task_leads_to_the_list(open_page, cluster, stored, query):
    cluster.completed()
    stored()
    app = open_page(links.TASK, **query)
    assert any(text.startswith("No ") for text in texts(app))
    assert [link.proto.page for link in app.get("page_link")] == ["tasks"]


def test_an_id_alone_lists_all_tasks_that_have_it(open_page, cluster, stored):
    for owner in ("alice", "bob"):
        cluster.completed("same-id", owner=owner)
    stored()
    app = open_page(links.TASK, task="same-id")
    assert sorted(app.dataframe[0].value["owner"]) == ["alice", "bob"]


def test_traces_link_to_jaeger_where_there_is_one(open_page, cluster, stored, store_url):
    task = cluster.overwritten()
    stored()
    assert "trace" not in open_page(links.TASK, **task_query(task)).dataframe[0].value
    settings = Settings(store_url, jaeger_url="http://localhost:16686")
    trace = open_page(links.TASK, settings, **task_query(task)).dataframe[0].value["trace"]
    assert trace.str.startswith("http://localhost:16686/trace/").all()


def test_a_task_with_many_facts_says_how_many_are_shown(open_page, cluster, stored):
    task = cluster.task("long")
    for n in range(2_100):
        task.write(cluster.a, c.WORKING, n or None, n + 1)
    stored()
    app = open_page(links.TASK, **task_query(task))
    assert "showing 1,101 to 2,100 of 2,100 facts" in everything(app)
    assert any("showing facts 1,901 to 2,100 of 2,100" in text for text in texts(app))
    assert len(app.dataframe[0].value) == 1_000


def test_a_long_story_leaves_out_what_matters_least(open_page, cluster, stored):
    task = cluster.task("long-story")
    task.write(cluster.a, c.WORKING, None, 1)
    task.write(cluster.b, c.CANCELED, 1, 2, origin=c.FROM_CANCEL_REMOTE)
    for _ in range(20):
        task.read(cluster.a, c.CANCELED, 2)
    task.refused(cluster.a, c.WORKING, 1, event_kind=c.ARTIFACT_EVENT)
    task.write(cluster.a, c.COMPLETED, 2, 3)
    stored()
    (story,) = [
        text for text in texts(open_page(links.TASK, **task_query(task))) if "which became" in text
    ]
    assert story.count("\n") == 2
    assert "api-0's artifact-update on v1 was refused" in story
    assert story.endswith("api-0 wrote COMPLETED on v2, which became v3.")


def test_spans_say_under_which_write_they_were(open_page, cluster, stored):
    task = cluster.task("spans")
    write = task.write(cluster.a, c.WORKING, None, 1, span_id="a" * 16)
    for span_id, parent, name in (("a" * 16, None, "save"), ("b" * 16, "a" * 16, "UPDATE tasks")):
        cluster.spans.append(
            Span(write.trace_id, span_id, parent, name, START, START + 1, "api", False, "{}")
        )
    cluster.spans.append(
        Span(write.trace_id, "c" * 16, None, "POST /x", START, START + 1, "api", False, "{}")
    )
    stored()
    spans = open_page(links.TASK, **task_query(task)).dataframe[1].value
    assert dict(zip(spans["span"].str.strip(), spans["fact"], strict=True)) == {
        "save": "#1",
        "UPDATE tasks": "#1",
        "POST /x": "",
    }


def test_a_fact_that_is_clicked_on_is_shown_in_full(open_page, cluster, stored, monkeypatch):
    task = cluster.overwritten()
    (fact,) = [fact for fact in cluster.facts if fact.version == 4]
    stored()
    monkeypatch.setattr(detail, "picked", lambda _: fact.id)
    app = open_page(links.TASK, **task_query(task))
    assert "#9 api-0 wrote COMPLETED on v3, which became v4" in texts(app)
    assert fact.trace_id in texts(app)
    assert "900 µs" in texts(app)


@pytest.mark.parametrize(
    ("selection", "fact"),
    [
        ({"selection": {"points": [{"customdata": "r:1"}]}}, "r:1"),
        ({"selection": {"points": [{"customdata": ["r:1"]}]}}, "r:1"),
        ({"selection": {"points": [{}]}}, None),
        ({"selection": {"points": []}}, None),
        (None, None),
    ],
)
def test_a_click_names_a_fact_or_nothing(selection, fact):
    assert detail.picked(selection) == fact
