from __future__ import annotations

import re
from urllib.parse import parse_qs, unquote, urlparse

import pytest

from a2a_fencing.facts import TaskKey
from a2a_fencing_dashboard.ui import links

KEYS = [
    TaskKey("tasks @ postgresql", "alice", "7f3c9a2e"),
    TaskKey("s", "", "t", 3),
    TaskKey("s&owner=x", "a b+c", "../t?task=1#frag%20"),
    TaskKey("s", "o", "<b>ü漢</b>\u202e\x00"),
    TaskKey("s", "o", "x" * 3000),
]


@pytest.mark.parametrize("key", KEYS)
def test_a_url_names_exactly_one_task(key):
    url = urlparse(links.task_url(key, {"run": "load-42"}))
    query = {name: values[-1] for name, values in parse_qs(url.query, keep_blank_values=True).items()}
    assert url.path == "/task"
    assert links.task_key(query) == key
    assert query["run"] == "load-42"


@pytest.mark.parametrize(
    "query",
    [
        {},
        {"task": "t"},
        {"task": "t", "owner": "o"},
        {"task": "t", "owner": "o", "store": "s", "incarnation": "-1"},
        {"task": "t", "owner": "o", "store": "s", "incarnation": "²"},
        {"task": "t", "owner": "o", "store": "s", "incarnation": "x"},
    ],
)
def test_half_a_key_names_nothing(query):
    assert links.task_key(query) is None


@pytest.mark.parametrize(
    ("task_id", "cell"),
    [
        ("7f3c9a2e", "7f3c9a2e"),
        ("a&b=c#d", "a&b=c#d"),
        ("\u202egnp.exe", "\ufffdgnp.exe"),
        ("x" * 3000, "x" * 39 + "…" + "x" * 20),
    ],
)
def test_a_table_cell_shows_the_id_made_visible(task_id, cell):
    url = links.task_url(TaskKey("s", "o", task_id), {})
    (found,) = re.match(links.TASK_CELL, url).groups()
    assert unquote(found.replace("+", " ")) == cell


def test_traces_link_to_jaeger_only_by_a_trace_id():
    trace = "0af7651916cd43dd8448eb211c80319c"
    assert links.trace_url("http://jaeger:16686/", trace) == f"http://jaeger:16686/trace/{trace}"
    assert links.trace_url(None, trace) is None
    assert links.trace_url("http://jaeger:16686", None) is None
    assert links.trace_url("http://jaeger:16686", "../../x?y") is None
    assert links.trace_url("http://jaeger:16686", trace + "\n") is None
