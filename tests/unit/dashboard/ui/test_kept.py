"""What is drawn of unchanged data is not made again, and is on the page nevertheless."""

from __future__ import annotations

import pytest

from a2a_fencing_dashboard.ui import links
from a2a_fencing_dashboard.ui.pages import overview, task
from support.pages import task_query


@pytest.fixture
def made(monkeypatch):
    """Counts what is made: the parts of pages by their module's function."""
    counts: dict[str, int] = {}

    def count(module, name):
        make = getattr(module, name)

        def counted(*args, **kwargs):
            counts[name] = counts.get(name, 0) + 1
            return make(*args, **kwargs)

        monkeypatch.setattr(module, name, counted)

    count(task.frames, "facts")
    count(task, "timeline")
    count(overview, "rates")
    return counts


def test_a_task_without_a_new_fact_is_listed_and_drawn_once_for_all_who_look(
    open_page, cluster, stored, made
):
    shown = cluster.overwritten()
    stored()
    first = open_page(links.TASK, **task_query(shown))
    cluster.completed()
    stored()
    again, another = first.run(), open_page(links.TASK, **task_query(shown))
    assert made == {"facts": 1, "timeline": 1}
    for app in (again, another):
        assert len(app.dataframe[0].value) == 11
        assert len(app.get("plotly_chart")) == 1


def test_a_new_fact_of_a_task_is_listed(open_page, cluster, stored, made):
    shown = cluster.overwritten()
    stored()
    app = open_page(links.TASK, **task_query(shown))
    shown.read(cluster.a, "COMPLETED", 4)
    stored()
    assert len(app.run().dataframe[0].value) == 12
    assert made == {"facts": 2, "timeline": 2}


def test_rates_are_drawn_anew_when_a_bucket_is_full(open_page, cluster, stored, made):
    cluster.overwritten()
    stored()
    app = open_page(links.OVERVIEW)
    assert len(app.run().get("plotly_chart")) == 1
    assert made == {"rates": 1}
    cluster.now += 60 * 10**9
    cluster.completed()
    stored()
    assert len(app.run().get("plotly_chart")) == 1
    assert made == {"rates": 2}
