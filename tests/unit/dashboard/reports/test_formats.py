"""Every format of a dossier, read back by what it is meant for."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from junitparser import Failure, JUnitXml, Skipped, TestCase

from a2a_fencing import allowlist
from a2a_fencing import conventions as c
from a2a_fencing.allowlist import Allowance
from a2a_fencing.checker import check
from a2a_fencing.facts import Fact
from a2a_fencing_dashboard.reports import FORMATS, Dossier, Place
from support.reports import Cluster

TASK = "7f3c9a2e-4b1d-4e1a-9a57-5d2f6b0c01e1"
VIOLATED = {c.ANSWER_CONTRADICTED, c.TERMINAL_OVERWRITTEN, c.CANCEL_INEFFECTIVE}
ALLOWANCE = Allowance(c.CANCEL_INEFFECTIVE, "the SDK cannot stop it yet")
HOSTILE = "\x1b[2J<b>&\x00\ufffe\ud800'\"]]>"


@pytest.fixture
def cluster() -> Cluster:
    """Two replicas: one task was overwritten, one completed, and in one the fence held."""
    cluster = Cluster()
    cluster.heartbeats()
    cluster.overwritten(TASK)
    cluster.completed()
    cluster.refusal()
    return cluster


def judged(facts: Sequence[Fact], *allowances: Allowance, path: Path | None = None) -> Dossier:
    """The facts judged; each was read from a line of its own if there is a path."""
    report, allowed = allowlist.apply(check(facts), allowances)
    places = {fact.id: Place(path, line) for line, fact in enumerate(facts, 1)} if path else {}
    return Dossier({fact.id: fact for fact in facts}, report, allowed, places)


def render(form: str, dossier: Dossier) -> Any:
    text = FORMATS[form](dossier)
    return JUnitXml.fromstring(text.encode()) if form == "junit" else json.loads(text)


# --- all of them


@pytest.mark.parametrize("form", FORMATS)
def test_hostile_names_do_no_harm(form: str) -> None:
    cluster = Cluster()
    cluster.a = cluster.replica(HOSTILE, "a" * 36)
    cluster.heartbeats()
    cluster.overwritten(HOSTILE, owner=HOSTILE, context_id=HOSTILE, store=HOSTILE)
    text = FORMATS[form](judged(cluster.facts, Allowance(c.CANCEL_INEFFECTIVE, HOSTILE)))
    text.encode()
    assert not {"\x1b", "\x00"} & set(text)
    if form != "text":
        render(form, judged(cluster.facts))


@pytest.mark.parametrize("form", FORMATS)
def test_without_any_fact_nothing_is_fine(form: str) -> None:
    text = FORMATS[form](judged([]))
    assert "fine" not in text.lower()
    assert "unknown" in text.lower()


# --- text


def test_a_task_is_told_once_whatever_it_broke(cluster: Cluster) -> None:
    lines = FORMATS["text"](judged(cluster.facts)).splitlines()
    assert [line for line in lines if line.startswith("task ")] == [
        f"task {TASK} (owner alice, store tasks @ postgresql)"
    ]
    assert [line.partition("  [")[0] for line in lines if line[2:4].strip().isdigit()] == [
        "   1. api-1 wrote CANCELED (status-update) on v2, and the store made it v3",
        "   2. api-1 answered CancelTask: told CANCELED",
        "   3. api-0 was refused WORKING (artifact-update) on v2: a rival had written since",
        "   4. api-0 read CANCELED at v3 (reload)",
        "   5. api-0 dropped an artifact-update (stale-executor)",
        "   6. api-0 wrote COMPLETED (status-update) on v3, and the store made it v4",
        "   7. api-0 ended a stream (terminal), having told CANCELED",
    ]
    assert "  terminal-overwritten  critical, proven  (steps 1, 6)" in lines
    assert sum(line.startswith("    Broken: ") for line in lines) == len(VIOLATED)


def test_a_witness_that_is_not_here_is_named(cluster: Cluster) -> None:
    dossier = judged(cluster.facts)
    lost = dossier.violations[0].witness[0]
    rest = {fact_id: fact for fact_id, fact in dossier.facts.items() if fact_id != lost}
    text = FORMATS["text"](Dossier(rest, dossier.report))
    assert f"fact {lost}, which is not here" in text


def test_what_is_missing_and_what_it_leaves_in_doubt(cluster: Cluster) -> None:
    cluster.facts = [fact for fact in cluster.facts if fact.task is None or fact.n != 4]
    lines = FORMATS["text"](judged(cluster.facts)).splitlines()
    assert any(line.startswith("missing: ") for line in lines)
    assert any(line.startswith("in doubt: task ") for line in lines)


def test_only_some_of_many_doubts_are_told() -> None:
    cluster = Cluster()
    cluster.heartbeats()
    for n in range(12):
        cluster.completed(f"task-{n}")
    facts = [fact for fact in cluster.facts if fact.version != 2]
    lines = FORMATS["text"](judged(facts)).splitlines()
    assert sum(line.startswith("in doubt: task ") for line in lines) == 10
    assert "in doubt: 2 more tasks" in lines


# --- json


def test_json_holds_the_findings_by_task(cluster: Cluster) -> None:
    document = render("json", judged(cluster.facts, ALLOWANCE))
    assert (document["verdict"], document["complete"], document["missing"]) == ("violated", True, 0)
    assert (document["facts"], document["tasks"]) == (len(cluster.facts), 3)
    (case,) = document["cases"]
    assert case["task"] == {
        "store": "tasks @ postgresql", "owner": "alice", "task_id": TASK, "incarnation": 0,
    }  # fmt: skip
    assert {finding["rule"] for finding in case["findings"]} == VIOLATED - {c.CANCEL_INEFFECTIVE}
    assert [(one["rule"], one["reason"]) for one in case["allowed"]] == [
        (c.CANCEL_INEFFECTIVE, ALLOWANCE.reason)
    ]


def test_json_holds_the_facts_of_a_witness_in_full(cluster: Cluster) -> None:
    document = render("json", judged(cluster.facts))
    (finding,) = (
        finding
        for finding in document["cases"][0]["findings"]
        if finding["rule"] == c.TERMINAL_OVERWRITTEN
    )
    cancel, overwrite = finding["witness"]
    assert (cancel["state"], cancel["version"], cancel["origin"]) == ("CANCELED", 3, "cancel-remote")
    assert (overwrite["state"], overwrite["base_version"]) == ("COMPLETED", 3)
    assert "reason" not in overwrite
    assert finding["story"][-1] == "Broken: a terminal state is final."


def test_json_names_the_gaps(cluster: Cluster) -> None:
    lost = next(fact for fact in cluster.facts if fact.version == 2)
    cluster.facts.remove(lost)
    document = render("json", judged(cluster.facts))
    assert document["gaps"] == [
        {"replica": lost.replica, "replica_name": "api-0", "first": lost.n, "last": lost.n}
    ]
    assert document["missing"] == 1


# --- junit


def cases(dossier: Dossier) -> dict[str, TestCase]:
    (suite,) = render("junit", dossier)
    return {case.name: case for case in suite}


def test_junit_has_a_test_for_each_rule(cluster: Cluster) -> None:
    document = render("junit", judged(cluster.facts, ALLOWANCE))
    assert (document.tests, document.failures, document.skipped) == (15, 2, 1)
    tests = cases(judged(cluster.facts, ALLOWANCE))
    assert list(tests) == [*c.RULES, "history-complete"]
    failed = {name for name, case in tests.items() if isinstance(next(iter(case.result), None), Failure)}
    assert failed == VIOLATED - {c.CANCEL_INEFFECTIVE}
    (skipped,) = tests[c.CANCEL_INEFFECTIVE].result
    assert isinstance(skipped, Skipped)
    assert skipped.message == "1 finding allowed: the SDK cannot stop it yet"
    (failure,) = tests[c.TERMINAL_OVERWRITTEN].result
    assert failure.message.endswith(": 1 finding")
    assert f"task {TASK} (owner alice" in failure.text
    assert "Broken: a terminal state is final." in failure.text


def test_junit_of_a_fine_history_has_no_failure() -> None:
    cluster = Cluster()
    cluster.heartbeats()
    cluster.completed()
    assert render("junit", judged(cluster.facts)).failures == 0


def test_junit_fails_the_history_that_is_incomplete(cluster: Cluster) -> None:
    cluster.facts = [fact for fact in cluster.facts if fact.task is None or fact.n != 4]
    (failure,) = cases(judged(cluster.facts))["history-complete"].result
    assert "history incomplete" in failure.message
    assert "missing: fact 4 of api-0" in failure.text


def test_junit_tells_some_of_very_many_findings() -> None:
    cluster = Cluster()
    cluster.heartbeats()
    for n in range(25):
        cluster.overwritten(f"task-{n}")
    (failure,) = cases(judged(cluster.facts))[c.TERMINAL_OVERWRITTEN].result
    assert failure.message.endswith(": 25 findings")
    assert failure.text.count("\ntask ") + 1 == 20
    assert "showing 20 of 25" in failure.text


# --- sarif


def run(dossier: Dossier) -> dict[str, Any]:
    document = render("sarif", dossier)
    assert document["version"] == "2.1.0"
    (only,) = document["runs"]
    return only


def test_sarif_points_at_the_line_that_broke_the_rule(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    only = run(judged(cluster.facts, path=tmp_path / "ci run" / "facts.jsonl"))
    rules = only["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == list(c.RULES)
    assert {result["ruleId"] for result in only["results"]} == VIOLATED
    for result in only["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        last = result["properties"]["witness"][-1]
        line = [fact.id for fact in cluster.facts].index(last) + 1
        (location,) = result["locations"]
        assert location["physicalLocation"] == {
            "artifactLocation": {"uri": "ci%20run/facts.jsonl"}, "region": {"startLine": line},
        }  # fmt: skip
        assert location["logicalLocations"][0]["name"] == TASK


def test_sarif_tells_the_witness_as_a_flow(cluster: Cluster, tmp_path: Path) -> None:
    only = run(judged(cluster.facts, path=tmp_path / "facts.jsonl"))
    (result,) = (r for r in only["results"] if r["ruleId"] == c.TERMINAL_OVERWRITTEN)
    assert result["level"] == "error"
    assert result["message"]["text"].startswith("CANCELED (v3, api-1) was overwritten by COMPLETED")
    (flow,) = result["codeFlows"]
    steps = flow["threadFlows"][0]["locations"]
    assert [step["executionOrder"] for step in steps] == [1, 2]
    assert "api-1 wrote CANCELED" in steps[0]["location"]["message"]["text"]
    assert "api-0 wrote COMPLETED" in steps[1]["location"]["message"]["text"]


def test_sarif_suppresses_what_is_allowed(cluster: Cluster, tmp_path: Path) -> None:
    only = run(judged(cluster.facts, ALLOWANCE, path=tmp_path / "facts.jsonl"))
    suppressed = {r["ruleId"]: r["suppressions"] for r in only["results"]}
    assert suppressed.pop(c.CANCEL_INEFFECTIVE) == [
        {"kind": "external", "status": "accepted", "justification": ALLOWANCE.reason}
    ]
    assert set(map(str, suppressed.values())) == {"[]"}


def test_sarif_recognises_a_finding_again(cluster: Cluster, tmp_path: Path) -> None:
    def prints(dossier: Dossier) -> set[str]:
        return {str(result["partialFingerprints"]) for result in run(dossier)["results"]}

    first = prints(judged(cluster.facts, path=tmp_path / "one.jsonl"))
    cluster.overwritten("another")
    again = prints(judged(cluster.facts, path=tmp_path / "two.jsonl"))
    assert len(first) == len(VIOLATED)
    assert first < again


def test_sarif_notes_what_is_missing(cluster: Cluster) -> None:
    cluster.facts = [fact for fact in cluster.facts if fact.task is None or fact.n != 4]
    (invocation,) = run(judged(cluster.facts))["invocations"]
    assert invocation["executionSuccessful"] is True
    notes = invocation["toolExecutionNotifications"]
    assert {"missing-facts", "task-in-doubt"} == {note["descriptor"]["id"] for note in notes}


def test_sarif_without_files_names_the_task_alone(cluster: Cluster) -> None:
    for result in run(judged(cluster.facts))["results"]:
        assert "codeFlows" not in result
        (location,) = result["locations"]
        assert location.keys() == {"logicalLocations"}
