"""Lines of findings: signs, and text that stays text."""

from __future__ import annotations

from html import unescape

import pytest

from a2a_fencing import conventions as c
from a2a_fencing.checker import Finding
from a2a_fencing.facts import TaskKey
from a2a_fencing_dashboard.ui.findings import Line, as_html

HOSTILE = '<img src=x onerror=alert(1)> & "quoted" :red[x]'


def finding(**fields: str) -> Finding:
    values = {"severity": c.CRITICAL, "certainty": c.PROVEN, "rule": c.TERMINAL_OVERWRITTEN, **fields}
    return Finding(task=TaskKey("s", "", "t"), witness=(), explanation="explained", key="k", **values)


def test_a_line_says_how_grave_how_certain_which_rule_and_what() -> None:
    html = as_html([Line(finding(), "what happened")])
    for word in (c.CRITICAL, c.PROVEN, c.TERMINAL_OVERWRITTEN, "what happened"):
        assert word in html
    assert "muted" not in html
    assert "muted" in as_html([Line(finding(), "", muted=True)])


def test_all_lines_are_one_element() -> None:
    html = as_html([Line(finding(), "one"), Line(finding(certainty=c.SUSPECTED), "two")])
    assert html.startswith('<div class="findings">')
    assert html.count('<div class="finding">') == 2


@pytest.mark.parametrize("field", ["text", "rule", "severity", "certainty"])
def test_what_comes_from_outside_is_text(field: str) -> None:
    line = Line(finding(), HOSTILE) if field == "text" else Line(finding(**{field: HOSTILE}), "text")
    html = as_html([line])
    assert "<img" not in html
    assert HOSTILE.split()[0] not in html
    if field == "text":
        assert HOSTILE in unescape(html)
