"""Overview, run from the entry as a browser would have it run."""

from __future__ import annotations

from support.pages import everything, texts


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


def test_numbers_lead_to_the_lists_behind_them(open_page, cluster, stored):
    cluster.overwritten()
    running = cluster.task("running")
    running.write(cluster.a, "WORKING", None, 1)
    stored()
    app = open_page()
    queries = {link.proto.label: link.proto.query_string for link in app.get("page_link")}
    assert "abandoned tasks" in texts(app)
    assert "executions running" in texts(app)
    assert "state=WORKING" in queries["1"]
    assert "2" in queries
