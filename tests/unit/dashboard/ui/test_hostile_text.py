"""Text from outside is shown as text on every page."""

from __future__ import annotations

import re

import pytest

from a2a_fencing_dashboard.ui import links
from support.pages import task_query, texts

HOSTILE = [
    "<b>bold</b><img src=x onerror=alert(1)>",
    "![img](http://evil.example/x.png) [link](http://evil.example)",
    "$\\frac{a}{b}$ :red[red] :material/bolt: **b**",
    "http://evil.example/auto",
    "\u202egnp.exe\x00\n\n# head",
    "a" * 3000,
]


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
    for element in app.get("html"):
        yield re.sub(r">[^<]*<", "><", element.proto.body)  # what is between tags is text
    kinds = ("markdown", "caption", "button", "page_link", "toggle")
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
