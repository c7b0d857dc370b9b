"""The report as a page: what it says, and what it cannot be made to do."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import pytest

from a2a_fencing import allowlist
from a2a_fencing import conventions as c
from a2a_fencing.allowlist import Allowance
from a2a_fencing.checker import Report, check
from a2a_fencing_dashboard.reports import Dossier
from a2a_fencing_dashboard.reports.html import as_html
from support.reports import Cluster

TASK = "7f3c9a2e-4b1d-4e1a-9a57-5d2f6b0c01e1"
DOUBTFUL = "11aa22bb"
HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'{{ 7 * 7 }}\ud800"


class Page(HTMLParser):
    """The elements and the text of a page, as a browser sees them."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[tuple[str | None, str]] = []
        self.text = ""
        self._inside = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attributes)))
        self._inside = tag
        if tag == "script":
            self.scripts.append((dict(attributes).get("type"), ""))

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "script":
            kind, text = self.scripts[-1]
            self.scripts[-1] = kind, text + data
        elif self._inside != "style":
            self.text += data

    @property
    def figures(self) -> list[str]:
        return [text for kind, text in self.scripts if kind == "application/json"]

    @property
    def run(self) -> list[str]:
        return [text for kind, text in self.scripts if kind is None]

    @property
    def policy(self) -> str:
        (content,) = (
            attributes["content"]
            for tag, attributes in self.elements
            if tag == "meta" and attributes.get("http-equiv") == "Content-Security-Policy"
        )
        return content or ""


@pytest.fixture
def cluster() -> Cluster:
    cluster = Cluster()
    cluster.heartbeats()
    cluster.overwritten(TASK)
    cluster.completed(DOUBTFUL)
    return cluster


def page(cluster: Cluster) -> Page:
    return Page(as_html(Dossier.of(cluster.facts, check(cluster.facts))))


def test_the_verdict_the_findings_and_the_steps_are_there(cluster: Cluster) -> None:
    text = page(cluster).text
    places = [
        text.index(part)
        for part in (
            "Violated",
            "3 findings on 1 of 2 tasks; history complete",
            TASK,
            "CANCELED (v3, api-1) was overwritten by COMPLETED (v4, api-0)",
            "shown by steps 1, 6",
            "Broken: a terminal state is final.",
            "api-1 answered CancelTask: told CANCELED",
            "ordered by version",
            "api-0 wrote COMPLETED on v3, which became v4",
        )
    ]
    assert places == sorted(places)


def test_every_fact_of_the_task_is_listed_with_the_rules_that_it_broke(cluster: Cluster) -> None:
    found = page(cluster)
    own = [fact for fact in cluster.facts if fact.task is not None and fact.task.task_id == TASK]
    for fact in own:
        assert fact.id in found.text
    broken = [attributes for tag, attributes in found.elements if attributes.get("class") == "broke"]
    assert len(broken) == 1


def test_the_timeline_is_the_dashboards(cluster: Cluster) -> None:
    (figure,) = page(cluster).figures
    layout = json.loads(figure)["layout"]
    assert layout["yaxis"]["ticktext"] == ["clients", "store", "api-0", "api-1"]


def test_the_drawing_script_is_there_once_for_all_tasks(cluster: Cluster) -> None:
    for n in range(3):
        cluster.overwritten(f"task-{n}")
    found = page(cluster)
    assert len(found.figures) == 4
    assert len(found.run) == 2


def test_a_page_without_a_timeline_is_small() -> None:
    cluster = Cluster()
    cluster.heartbeats()
    cluster.completed()
    html = as_html(Dossier.of(cluster.facts, check(cluster.facts)))
    assert Page(html).scripts == []
    assert len(html) < 20_000
    assert "Fine" in Page(html).text


def test_only_our_own_scripts_may_run_and_nothing_may_be_fetched(cluster: Cluster) -> None:
    found = page(cluster)
    directives = dict(
        directive.strip().split(" ", 1) for directive in found.policy.split(";") if directive
    )
    assert directives["default-src"] == "'none'"
    hashes = {
        f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
        for text in found.run
    }
    assert set(directives["script-src"].split()) == hashes
    for tag, attributes in found.elements:
        assert tag not in {"link", "iframe", "img", "object", "base"}
        assert "src" not in attributes
        assert (attributes.get("href") or "#").startswith("#")
        assert not any(name.startswith("on") for name in attributes)


def test_hostile_text_stays_text() -> None:
    cluster = Cluster()
    cluster.a = cluster.replica(HOSTILE, HOSTILE)
    cluster.heartbeats()
    for n in range(2):
        cluster.overwritten(f"{HOSTILE}{n}", owner=HOSTILE, context_id=HOSTILE, store=HOSTILE)
    facts = cluster.facts
    report = check(facts)
    allowed = Allowance(c.CANCEL_INEFFECTIVE, HOSTILE)
    found = Page(as_html(Dossier.of(facts, *allowlist.apply(report, [allowed]))))
    assert len(found.run) == 2
    assert not any("alert" in text for text in found.run[1:])
    assert "<script>alert(1)</script>" in found.text
    assert "{{ 7 * 7 }}" in found.text
    assert not any(tag == "img" for tag, _ in found.elements)


def test_an_html_file_can_hold_whatever_came_over_the_wire() -> None:
    cluster = Cluster()
    cluster.heartbeats()
    cluster.overwritten("\ud800")
    as_html(Dossier.of(cluster.facts, check(cluster.facts))).encode()


def test_what_is_missing_in_doubt_allowed_and_for_information(cluster: Cluster) -> None:
    task = cluster.completed("mutated")
    task.write(cluster.a, c.COMPLETED, 3, 4, event_kind=c.ARTIFACT_EVENT)
    lost = next(f for f in cluster.facts if f.task and f.task.task_id == DOUBTFUL and f.version == 2)
    facts = [fact for fact in cluster.facts if fact is not lost]
    allowed = Allowance(c.CANCEL_INEFFECTIVE, "the SDK cannot stop it yet")
    text = Page(as_html(Dossier.of(facts, *allowlist.apply(check(facts), [allowed])))).text
    assert f"Missing: fact {lost.n} of api-0." in text
    assert re.search(r"Allowed\s+rule\s*task\s*reason\s+cancel-ineffective", text)
    assert allowed.reason in text
    assert re.search(rf"In doubt\s+{DOUBTFUL}", text)
    assert re.search(r"For information\s+terminal-mutated 1", text)


def test_many_tasks_are_capped_and_said_to_be() -> None:
    cluster = Cluster()
    cluster.heartbeats()
    for n in range(27):
        cluster.overwritten(f"task-{n:02}")
    found = page(cluster)
    assert "Showing 25 of 27 violated tasks." in found.text
    assert len(found.figures) == 25


def test_a_long_task_shows_the_stretch_that_matters() -> None:
    cluster = Cluster()
    cluster.heartbeats()
    task = cluster.overwritten(TASK)
    for version in range(4, 700):
        task.write(cluster.a, c.COMPLETED, version, version + 1)
    found = page(cluster)
    assert stretch(r"showing facts ([\d,]+) to ([\d,]+) of 707", found.text) == 200
    assert stretch(r"Facts\s+([\d,]+) to ([\d,]+) of 707 facts", found.text) == 500


def stretch(pattern: str, text: str) -> int:
    found = re.search(pattern, text)
    assert found is not None
    first, last = (int(number.replace(",", "")) for number in found.groups())
    return last - first + 1


def test_one_task_of_a_dashboard(cluster: Cluster) -> None:
    own = [fact for fact in cluster.facts if fact.task is None or fact.task.task_id == TASK]
    whole = check(cluster.facts)
    findings = tuple(finding for finding in whole.findings if finding.task.task_id == TASK)
    report = Report(findings, verdicts={findings[0].task: c.VIOLATED})
    text = Page(as_html(Dossier.of(own, report))).text
    assert "3 findings on 1 of 1 task" in text


def test_it_names_the_runs_and_whether_they_were_guarded() -> None:
    bare, mixed = Cluster("bare"), Cluster(f"mixed {HOSTILE[:30]}")
    bare.heartbeats()
    mixed.a = mixed.replica("api-0", "other-a")
    mixed.b = mixed.replica("api-1", "other-b")
    mixed.a.heartbeat(guard=True)
    mixed.b.heartbeat()
    facts = [*bare.facts, *mixed.facts]
    page = Page(as_html(Dossier.of(facts, check(facts))))
    assert "run bare, guard off" in page.text
    assert f"run mixed {HOSTILE[:30]}, guard on some replicas only" in page.text
