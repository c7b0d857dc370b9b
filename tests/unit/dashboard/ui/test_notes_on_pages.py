"""Acknowledging and muting on the pages, and what the other pages make of it."""

from __future__ import annotations

import pytest

from a2a_fencing import conventions as c
from a2a_fencing_dashboard.store import StoreError
from a2a_fencing_dashboard.store.notes import ACKNOWLEDGED, MUTED, Note
from a2a_fencing_dashboard.store.protocol import Window
from a2a_fencing_dashboard.store.sqlite import SqliteStore
from a2a_fencing_dashboard.ui import links, noting
from support.pages import everything, task_query, texts
from support.reports import Cluster

NOW = 1_700_000_000_000_000_000
HOSTILE = "<b>![x](http://evil.example/x.png)</b> $x$ :red[x]"


@pytest.fixture
def bad(cluster, stored):
    task = cluster.overwritten("bad")
    stored()
    return task


LABELS = {"ack": "Acknowledge", "mute": "Mute"}


def write(app, kind, task, by, because):
    """Opens a form as a click does, fills it in and sends it."""
    name = f"form-{kind}-{noting.tag(task.key)}"
    app.session_state[name] = True
    app.run()
    app.text_input(key=f"{name}-by").set_value(by)
    app.text_input(key=f"{name}-because").set_value(because)
    (button,) = [button for button in app.button if button.label == LABELS[kind]]
    return button.click().run()


def note(store, kind, task=None, **fields):
    store.add_note(Note(kind, "Ada", "known", task and task.key, **fields), now_unix_nano=NOW)


def test_an_acknowledged_alert_stays_and_says_by_whom_and_why(open_page, bad, store):
    app = write(open_page(links.ALERTS), "ack", bad, "Ada", "looking into it")
    assert any("by Ada" in text and "looking into it" in text for text in texts(app))
    assert c.TERMINAL_OVERWRITTEN in texts(app)
    assert store.new_violations(Window()) == 0
    (said,) = store.notes()
    assert (said.kind, said.by, said.because, said.task) == (
        ACKNOWLEDGED,
        "Ada",
        "looking into it",
        bad.key,
    )


def test_a_muted_alert_is_counted_and_shown_where_asked_for(open_page, bad, store):
    app = write(open_page(links.ALERTS), "mute", bad, "Ada", "known")
    assert c.TERMINAL_OVERWRITTEN not in texts(app)
    assert "1 muted" in everything(app)
    shown = open_page(links.ALERTS, muted="show")
    assert c.TERMINAL_OVERWRITTEN in texts(shown)
    assert any("terminal-overwritten by Ada" in text and "known" in text for text in texts(shown))


@pytest.mark.parametrize(("by", "because"), [("", "why"), ("Ada", " "), ("", "")])
def test_nothing_is_noted_without_a_name_and_a_reason(open_page, bad, store, by, because):
    app = write(open_page(links.ALERTS), "mute", bad, by, because)
    assert "Say who you are and why." in texts(app)
    assert store.notes() == []


def test_a_rule_of_a_whole_run_is_muted_and_listed_with_the_way_back(open_page, bad, store):
    note(store, MUTED, rule=c.TERMINAL_OVERWRITTEN, run="load-42")
    app = open_page(links.ALERTS)
    assert c.TERMINAL_OVERWRITTEN not in [text for text in texts(app) if text in c.RULES]
    assert any(
        text.startswith("terminal-overwritten in run load-42 by Ada") and text.endswith(": known")
        for text in texts(app)
    )
    (undo,) = [button for button in app.button if button.label == "Undo"]
    undo.click().run()
    assert store.notes() == []


def test_a_note_that_cannot_be_kept_is_told_in_the_form(open_page, bad, store, monkeypatch):
    def refuse(*_, **__):
        raise StoreError("cannot write to the store: disk full")

    monkeypatch.setattr(SqliteStore, "add_note", refuse)
    app = write(open_page(links.ALERTS), "mute", bad, "Ada", "known")
    assert "cannot write to the store: disk full" in texts(app)


def test_when_all_is_muted_it_says_so(open_page, bad, store):
    note(store, MUTED, bad)
    app = open_page(links.ALERTS)
    assert "Everything that matches is muted." in texts(app)
    (button,) = [button for button in app.button if button.label == "Show"]
    assert c.TERMINAL_OVERWRITTEN in texts(button.click().run())


def test_a_muted_violation_stays_a_violation(open_page, bad, store):
    note(store, MUTED, bad)
    app = open_page()
    assert "**Violated**" in everything(app)
    assert texts(app)[0].startswith("1 of 1 task broke a rule (1 of these muted)")
    assert any(text.startswith("Newest, muted") for text in texts(app))
    app = open_page(links.TASK, **task_query(bad))
    assert "**Violated**" in everything(app)
    assert any("by Ada" in text for text in texts(app))


def test_the_task_page_mutes_too(open_page, bad, store):
    write(open_page(links.TASK, **task_query(bad)), "mute", bad, "Ada", "known")
    assert [(said.kind, said.rule, said.task) for said in store.notes()] == [
        (MUTED, c.TERMINAL_OVERWRITTEN, bad.key)
    ]


def test_names_and_reasons_are_text(open_page, bad, store):
    store.add_note(Note(MUTED, HOSTILE, HOSTILE, bad.key), now_unix_nano=NOW)
    app = open_page(links.ALERTS, muted="show")
    assert any(text.count(HOSTILE) == 2 for text in texts(app))
    assert not any(HOSTILE in element.value for element in (*app.markdown, *app.caption))


def test_what_is_muted_in_another_run_is_not_of_this_one(open_page, bad, store):
    note(store, MUTED, rule=c.TERMINAL_OVERWRITTEN, run="load-42")
    assert any("load-42" in text for text in texts(open_page(links.ALERTS, run="load-42")))


def test_any_of_the_rules_can_be_muted(open_page, bad, store):
    app = open_page(links.ALERTS)
    name = f"form-mute-{noting.tag(bad.key)}"
    app.session_state[name] = True
    app.run()
    app.selectbox(key=f"{name}-rule").select(c.ANSWER_CONTRADICTED)
    app.selectbox(key=f"{name}-where").select("every task of run load-42")
    app.text_input(key=f"{name}-by").set_value("Ada")
    app.text_input(key=f"{name}-because").set_value("known")
    (button,) = [button for button in app.button if button.label == "Mute"]
    app = button.click().run()
    assert [(said.rule, said.task, said.run) for said in store.notes()] == [
        (c.ANSWER_CONTRADICTED, None, "load-42")
    ]
    assert c.ANSWER_CONTRADICTED not in texts(app)
    assert c.TERMINAL_OVERWRITTEN in texts(app)


def test_everything_found_so_far_is_acknowledged_at_once(open_page, bad, store, cluster, stored):
    cluster.overwritten("worse")
    stored()
    app = open_page(links.ALERTS, rule=[c.TERMINAL_OVERWRITTEN])
    app.session_state["form-ack-all"] = True
    app.run()
    app.text_input(key="form-ack-all-by").set_value("Ada")
    app.text_input(key="form-ack-all-because").set_value("the known defect")
    (button,) = [button for button in app.button if button.label == "Acknowledge all"]
    app = button.click().run()
    assert not app.exception
    assert [(said.rule, said.task) for said in store.notes()] == [(c.TERMINAL_OVERWRITTEN, None)]
    assert sum("the known defect" in text for text in texts(app)) == 2
    left = [row for row in store.findings(Window())[0] if row.finding.violates and not row.notes]
    assert store.new_violations(Window()) == len(left) > 0


def test_what_arrives_waits_until_the_form_is_closed(open_page, bad, cluster, stored):
    app = open_page(links.ALERTS)
    name = f"form-mute-{noting.tag(bad.key)}"
    app.session_state[name] = True
    app.run()
    cluster.overwritten("later")
    stored()
    assert "later" not in texts(app.run())
    app.session_state[name] = False
    assert "later" in texts(app.run())


def test_the_name_of_a_run_is_text_in_the_form(open_page, store, freeze):
    cluster = Cluster(run=HOSTILE)
    task = cluster.overwritten()
    cluster.heartbeats()
    cluster.commit(store)
    freeze(cluster.now)
    app = open_page(links.ALERTS)
    name = f"form-mute-{noting.tag(task.key)}"
    app.session_state[name] = True
    app.run()
    assert app.selectbox(key=f"{name}-where").options[1].startswith("every task of run ")
    assert [radio.label for radio in app.radio] == ["Time zone", "Look for new data every"]
    assert not any(HOSTILE in element.value for element in (*app.markdown, *app.caption))
