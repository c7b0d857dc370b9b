"""Each page, run from the entry as a browser would have it run."""

from __future__ import annotations

from pathlib import Path

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

import a2a_fencing_dashboard.ui
from a2a_fencing import conventions as c
from a2a_fencing_dashboard.ui import links, live
from a2a_fencing_dashboard.ui.app import PAGES
from a2a_fencing_dashboard.ui.settings import Settings

ENTRY = Path(a2a_fencing_dashboard.ui.__file__).parent / "entry" / "dashboard.py"

HOSTILE = [
    "<b>bold</b><img src=x onerror=alert(1)>",
    "![img](http://evil.example/x.png) [link](http://evil.example)",
    "$\\frac{a}{b}$ :red[red] :material/bolt: **b**",
    "http://evil.example/auto",
    "\u202egnp.exe\x00\n\n# head",
    "a" * 3000,
]


@pytest.fixture(autouse=True)
def fresh_caches():
    yield
    st.cache_resource.clear()


@pytest.fixture
def open_page(monkeypatch, store_url):
    """Opens a page at a query."""

    def opened(page=links.OVERVIEW, settings=None, /, **query):
        settings = settings or Settings(store_url)
        for name, value in settings.to_environment().items():
            monkeypatch.setenv(name, value)
        app = AppTest.from_file(str(ENTRY), default_timeout=60)
        app.query_params.update(query)
        # `switch_page` knows only pages that are files of their own.
        app._page_hash = calc_hash(PAGES[page].path)
        app.run()
        assert not app.exception, app.exception
        return app

    return opened


@pytest.fixture
def stored(cluster, store, freeze):
    """Stores what the cluster reported, all of it just now."""

    def commit(**options):
        cluster.heartbeats()
        cluster.commit(store, **options)
        freeze(cluster.now)

    return commit


@pytest.fixture
def freeze(monkeypatch):
    """Lets the pages see this moment as now."""
    return lambda now: monkeypatch.setattr("a2a_fencing_dashboard.ui.queries.time.time_ns", lambda: now)


def texts(app):
    return [element.value for element in app.text]


def everything(app):
    return "\n".join([*texts(app), *(e.value for e in app.markdown), *(e.value for e in app.caption)])


# --- A store without facts, and no store ------------------------------------------------------------


@pytest.mark.parametrize("page", list(PAGES))
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


# --- Overview ---------------------------------------------------------------------------------------


def test_a_fine_run(open_page, cluster, stored):
    cluster.completed()
    stored()
    app = open_page()
    assert "**Fine**" in everything(app)
    assert "No violation in 1 task." in texts(app)
    assert "Violated" not in everything(app)


def test_a_violated_run_begins_with_the_verdict_and_leads_to_the_task(open_page, cluster, stored):
    task = cluster.overwritten()
    cluster.completed()
    stored()
    app = open_page()
    assert "**Violated**" in app.markdown[0].value
    assert (
        texts(app)[0]
        == "1 of 2 tasks broke a rule; the gravest: a finished task was given another state."
    )
    assert any("CANCELED" in text and "COMPLETED" in text for text in texts(app))
    queries = [link.proto.query_string for link in app.get("page_link")]
    assert f"task={task.key.task_id}" in queries[0]
    assert "rule=terminal-overwritten" in queries
    assert "has=conflict" in queries


def test_missing_facts_are_never_fine(open_page, cluster, stored):
    cluster.completed()
    stored(without=[cluster.facts[2]])
    app = open_page()
    assert "**Unknown**" in everything(app)
    assert "**Fine**" not in everything(app)
    assert any("1 fact of api-0 never arrived." in text for text in texts(app))


def test_a_replica_that_falls_silent_at_work_is_never_fine(open_page, cluster, store, freeze):
    cluster.completed()
    cluster.heartbeats(executing=3)
    cluster.commit(store)
    freeze(cluster.now + 60_000_000_000)
    app = open_page()
    assert "**Unknown**" in everything(app)
    assert any("it was executing 3 tasks" in text for text in texts(app))
    assert list(app.dataframe[0].value["alive"].str[:8]) == ["✖ SILENT", "✖ SILENT"]


def test_a_run_without_tasks_is_not_fine(open_page, stored):
    stored()
    app = open_page()
    assert "**Unknown**" in everything(app)


def test_what_the_fence_held_is_no_violation(open_page, cluster, stored):
    cluster.refusal()
    stored()
    app = open_page()
    for name in ("stale-base conflicts", "terminal rejections", "dropped, stale-executor"):
        assert name in texts(app)
    assert "terminal-overwritten" not in everything(app)


# --- Tasks ------------------------------------------------------------------------------------------


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


# --- Task -------------------------------------------------------------------------------------------


def task_query(task):
    return dict(links.task_query(task.key))


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
    assert "showing 101 to 2,100 of 2,100 facts" in everything(app)
    assert any("showing facts 1,901 to 2,100 of 2,100" in text for text in texts(app))
    assert len(app.dataframe[0].value) == 2_000


# --- Alerts -----------------------------------------------------------------------------------------


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


# --- Live -------------------------------------------------------------------------------------------


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


def test_a_pulse_is_nothing_while_the_store_cannot_be_read():
    def broken():
        raise live.StoreError("gone")

    assert live.beat(broken) is None
    assert live.beat(lambda: (1,)) == (1,)


# --- Text from outside ------------------------------------------------------------------------------


@pytest.fixture
def hostile_tasks(cluster, stored):
    cluster.run = HOSTILE[0]
    cluster.a.name, cluster.b.name = HOSTILE[1], HOSTILE[2]
    tasks = [cluster.overwritten(text, owner=text, context_id=text, store=text) for text in HOSTILE]
    odd = cluster.task(HOSTILE[1], owner="odd")
    odd.write(cluster.a, HOSTILE[0], None, HOSTILE[1])
    odd.refused(cluster.b, HOSTILE[2], HOSTILE[1], reason=HOSTILE[1], event_kind=HOSTILE[0])
    odd.dropped(cluster.a, reason=HOSTILE[2], event_kind=HOSTILE[1])
    odd.dispatch(cluster.a, HOSTILE[1], HOSTILE[0])
    odd.answer(cluster.b, HOSTILE[1], method=HOSTILE[2], ending=HOSTILE[0])
    stored()
    return [*tasks, odd]


def interpreted(app):
    """Whatever Streamlit would read as Markdown or HTML."""
    kinds = ("markdown", "caption", "html", "button", "page_link", "toggle")
    for kind in kinds:
        for element in app.get(kind):
            proto = element.proto
            yield from (
                getattr(proto, name) for name in ("body", "label", "help") if hasattr(proto, name)
            )


def no_hostile_text(app):
    for text in interpreted(app):
        assert "evil.example" not in text
        assert "onerror" not in text
        assert "frac" not in text
        assert "aaaa" not in text
        assert "\u202e" not in text
    return True


@pytest.mark.parametrize("page", [links.OVERVIEW, links.TASKS, links.ALERTS])
def test_hostile_text_is_never_interpreted(open_page, hostile_tasks, page):
    assert no_hostile_text(open_page(page))


@pytest.mark.parametrize("place", range(len(HOSTILE) + 1))
def test_a_hostile_task_is_shown_as_text(open_page, hostile_tasks, place):
    app = open_page(links.TASK, **task_query(hostile_tasks[place]))
    assert no_hostile_text(app)
    assert len(app.dataframe[0].value) > 3
    for text in texts(app):
        assert "\u202e" not in text
        assert "\x00" not in text
        assert len(text) < 2_500


def test_hostile_parameters_are_harmless(open_page, cluster, stored):
    cluster.completed()
    stored()
    for text in HOSTILE:
        for page in (links.OVERVIEW, links.TASKS, links.ALERTS):
            query = {"run": text, "range": text, "q": text, "rule": [text], "sort": text, "page": text}
            assert no_hostile_text(open_page(page, **query))
        assert no_hostile_text(
            open_page(links.TASK, task=text, owner=text, store=text, incarnation=text)
        )
