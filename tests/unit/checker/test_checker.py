"""The checker object: batches, time, memory, restarts, and rules that fail."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import permutations

import pytest

from a2a_fencing import conventions as c
from a2a_fencing.checker import Changes, Checker, Finding, check
from a2a_fencing.checker.conclusion import SETTLE_NS, Check
from a2a_fencing.checker.history import History
from a2a_fencing.checker.rules import CHECKS
from a2a_fencing.facts import Fact, TaskKey
from support.tale import MS, Tale

W, C, X, S = c.WORKING, c.COMPLETED, c.CANCELED, c.SUBMITTED


def overwritten() -> Tale:
    tale = Tale()
    a, b = tale.replica("A"), tale.replica("B")
    a.write(S, to=1)
    a.write(W, 1, 2)
    b.read(2, W)
    b.cancel(2, 3)
    a.read(3, X)
    a.write(C, 3, 4)
    return tale


def rules(findings: tuple[Finding, ...]) -> list[str]:
    return [finding.rule for finding in findings]


# --- changes


def test_a_finding_appears_with_the_fact_that_shows_it() -> None:
    tale = overwritten()
    checker = Checker()

    assert checker.add(tale.facts[:-1]) == Changes()
    changes = checker.add(tale.facts[-1:])

    assert rules(changes.appeared) == [c.TERMINAL_OVERWRITTEN]
    assert changes.retracted == ()
    assert checker.add(tale.facts) == Changes()  # all of them are known


def test_a_late_fact_retracts_a_finding() -> None:
    tale = Tale()
    a, b = tale.replica("A"), tale.replica("B")
    a.write(S, to=1)
    a.write(W, 1, 2)
    late = a.write(C, 2, 3)
    b.read(5, W)
    b.heartbeat()
    a.heartbeat()
    b.write(W, 5, 6)
    a.heartbeat()
    checker = Checker()

    appeared = checker.add(fact for fact in tale.facts if fact is not late).appeared
    assert appeared == ()  # v5 has no writer, but a fact is missing that may say who

    (finding,) = checker.add([late]).appeared
    assert (finding.rule, finding.key) == (c.UNSEEN_WRITER, "v5")

    c4 = b.write(W, 3, 4, base_state=C)
    c5 = a.write(W, 4, 5, base_state=W)
    changes = checker.add([c4, c5])
    assert [f.identity for f in changes.retracted] == [finding.identity]
    assert rules(changes.appeared) == [c.TERMINAL_OVERWRITTEN]


def test_a_name_that_comes_late_rewrites_what_was_told() -> None:
    tale = overwritten()
    a = tale.replica("A2")
    checker = Checker()
    (before,) = checker.add(tale.facts).appeared
    tale.facts.clear()
    a.tell(c.HEARTBEAT, task=None)

    name = replace(a.last, id="B:9", replica="B", replica_name="api-1")
    missing = [replace(name, id=f"B:{n}") for n in range(3, 9)]
    changes = checker.add([name, *missing])

    assert changes.retracted == (before,)
    (after,) = changes.appeared
    assert after.identity == before.identity
    assert after.explanation == "CANCELED (v3, api-1) was overwritten by COMPLETED (v4, A)"


def test_a_gap_weakens_what_it_could_refute_and_its_end_restores_it() -> None:
    tale = Tale()
    a, b = tale.replica("A"), tale.replica("B")
    a.write(S, to=1)
    b.read(1, S)
    a.write(W, 1, 2)
    b.write(W, 1, 2)
    lost = a.read(2, W)
    a.heartbeat()
    checker = Checker()

    (finding,) = checker.add(fact for fact in tale.facts if fact is not lost).appeared
    assert (finding.rule, finding.certainty) == (c.VERSION_FORK, c.SUSPECTED)

    changes = checker.add([lost])
    assert changes.retracted == (finding,)
    assert changes.appeared == (replace(finding, certainty=c.PROVEN),)


def test_what_the_writer_itself_knew_no_gap_can_refute() -> None:
    facts = overwritten().facts

    report = check(facts[5:])  # only the last write arrived, with the state it replaced

    assert [(f.rule, f.certainty) for f in report.findings] == [(c.TERMINAL_OVERWRITTEN, c.PROVEN)]
    assert report.findings[0].explanation == "CANCELED (v3) was overwritten by COMPLETED (v4, A)"


# --- time


def unpushed() -> Tale:
    tale = Tale()
    a = tale.replica("A")
    a.write(S, to=1)
    a.push(S)
    a.write(C, 1, 2)
    return tale


def test_an_absence_means_nothing_before_the_fact_has_had_time_to_come() -> None:
    tale = unpushed()
    checker = Checker()

    assert checker.add(tale.facts, tale.now + MS) == Changes()
    assert checker.report().findings == ()
    assert rules(checker.add((), tale.now + SETTLE_NS).appeared) == [c.PUSH_CONTRADICTED]
    assert rules(checker.report().findings) == [c.PUSH_CONTRADICTED]


def test_an_absent_fact_that_comes_in_time_leaves_no_trace() -> None:
    tale = unpushed()
    checker = Checker()
    checker.add(tale.facts, tale.now)
    push = Tale.replica(tale, "B").push(C)

    assert checker.add([push], tale.now + MS) == Changes()
    assert checker.add((), tale.now + 2 * SETTLE_NS) == Changes()


def test_a_closed_history_is_judged_at_once() -> None:
    assert rules(unpushed().check().findings) == [c.PUSH_CONTRADICTED]


def test_nothing_rests_on_an_absence_while_facts_are_missing() -> None:
    tale = unpushed()
    lost = tale.replica("B").heartbeat()
    tale.facts.remove(lost)
    tale.replica("B").tell(c.HEARTBEAT, task=None)
    tale.facts[-1] = replace(tale.facts[-1], id="B:2")
    checker = Checker()

    assert checker.add(tale.facts) == Changes()
    assert rules(checker.add([lost]).appeared) == [c.PUSH_CONTRADICTED]


# --- memory


def test_a_forgotten_task_is_loaded_without_announcing_it_again() -> None:
    tale = overwritten()
    checker = Checker()
    checker.add(tale.facts)

    checker.forget([tale.key])
    assert not checker.knows(tale.key)
    assert checker.report().findings == ()

    assert checker.load(tale.facts) == Changes()
    assert checker.knows(tale.key)
    assert rules(checker.report().findings) == [c.TERMINAL_OVERWRITTEN]
    assert checker.report() == check(tale.facts)


def test_a_loaded_task_goes_on_where_it_was() -> None:
    tale = overwritten()
    checker = Checker()
    checker.add(tale.facts[:5])
    checker.forget([tale.key])
    checker.load(tale.facts[:5])

    assert rules(checker.add(tale.facts[5:]).appeared) == [c.TERMINAL_OVERWRITTEN]


def test_loading_tells_how_what_was_announced_differs_from_what_holds() -> None:
    tale = overwritten()
    (finding,) = check(tale.facts).findings
    stale = replace(finding, explanation="as an older version said it")

    assert Checker().load(tale.facts, announced=[]).appeared == (finding,)
    assert Checker().load(tale.facts, announced=[finding]) == Changes()
    changes = Checker().load(tale.facts, announced=[stale])
    assert (changes.appeared, changes.retracted) == ((finding,), (stale,))


def test_a_forgotten_task_still_announces_what_was_withheld() -> None:
    tale = unpushed()
    checker = Checker()
    checker.add(tale.facts, tale.now)
    checker.forget([tale.key])

    assert rules(checker.add((), tale.now + SETTLE_NS).appeared) == [c.PUSH_CONTRADICTED]
    assert checker.add((), tale.now + 2 * SETTLE_NS) == Changes()


def test_a_task_that_is_loaded_again_announces_what_was_withheld_once() -> None:
    tale = unpushed()
    checker = Checker()
    checker.add(tale.facts, tale.now)
    checker.forget([tale.key])
    checker.load(tale.facts, announced=[], now_unix_nano=tale.now)

    assert rules(checker.add((), tale.now + SETTLE_NS).appeared) == [c.PUSH_CONTRADICTED]
    assert checker.add((), tale.now + 2 * SETTLE_NS) == Changes()


def test_numbers_that_arrived_before_a_restart_are_not_missing() -> None:
    tale = overwritten()
    checker = Checker()
    checker.resume("A", [(1, 3)])
    checker.resume("B", [(1, 2), (4, 9)])
    checker.load(tale.facts)

    assert [(gap.replica, gap.first, gap.last) for gap in checker.gaps()] == [("B", 3, 3)]
    assert checker.add(tale.facts) == Changes()


def test_a_task_unknown_here_has_no_verdict_of_its_own() -> None:
    assert Checker().verdict(TaskKey("s", "o", "t")) == c.UNKNOWN


def test_a_verdict_by_the_task_s_own_facts_ignores_gaps_elsewhere() -> None:
    tale = Tale()
    tale.replica("A").write(C, to=1)
    tale.replica("B").tell(c.HEARTBEAT, task=None)
    tale.facts[-1] = replace(tale.facts[-1], id="B:3")
    checker = Checker()
    checker.add(tale.facts)

    assert checker.verdict(tale.key) == c.FINE
    report = checker.report()
    assert report.verdicts == {tale.key: c.UNKNOWN}
    assert report.doubts == {tale.key: ("facts of B are missing and may concern this task",)}


def test_a_task_created_after_a_gap_is_not_in_doubt_for_it() -> None:
    tale = Tale()
    a = tale.replica("A")
    lost = a.heartbeat()
    a.heartbeat()
    a.write(C, to=1)

    report = check(fact for fact in tale.facts if fact is not lost)

    assert not report.complete
    assert report.verdicts == {tale.key: c.FINE}
    assert report.verdict == c.UNKNOWN


def test_a_task_created_elsewhere_after_a_gap_by_the_measured_clocks_is_not_either() -> None:
    tale = Tale()
    a, b = tale.replica("A"), tale.replica("B", ahead_ms=60_000)
    a.write(C, to=1)
    b.read(1, C)  # B's clock is at most a minute and a moment ahead
    lost = a.heartbeat()
    a.heartbeat()
    tale.wait(10)
    other = Tale(task="task-2")
    other.now = tale.now
    b.key, b.tale = other.key, other
    b.write(C, to=1)

    report = check([fact for fact in (*tale.facts, *other.facts) if fact is not lost])

    assert report.verdicts == {tale.key: c.UNKNOWN, other.key: c.FINE}


# --- a rule that fails


def test_a_rule_that_fails_leaves_the_verdict_unknown_and_the_others_at_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object) -> tuple[()]:
        raise ZeroDivisionError("no such luck")

    broken = tuple(
        replace(one, judge=fail) if one.rule.name == c.VERSION_FORK else one for one in CHECKS
    )
    scopes: dict[str, tuple[Check, ...]] = {
        scope: tuple(one for one in broken if one.scope == scope) for scope in {o.scope for o in CHECKS}
    }
    monkeypatch.setattr("a2a_fencing.checker.history._SCOPES", scopes)
    tale = overwritten()

    report = tale.check()

    assert rules(report.findings) == [c.TERMINAL_OVERWRITTEN]
    assert report.doubts == {
        tale.key: ("rule version-fork failed: ZeroDivisionError: no such luck",),
    }
    assert report.verdict == c.VIOLATED
    fine = check([replace(f, state=W, base_state=None) for f in tale.facts if f.kind == c.WRITE][:1])
    assert fine.verdict == c.FINE  # a version that needs no judging


def test_a_fact_that_cannot_be_filed_leaves_the_verdict_unknown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object) -> None:
        raise KeyError("lost")

    monkeypatch.setattr("a2a_fencing.checker.incarnation.Incarnation._execution", fail)
    tale = Tale()
    a = tale.replica("A")
    a.start()
    a.write(C, to=1)

    report = tale.check()

    assert report.verdicts == {tale.key: c.UNKNOWN}
    assert report.doubts == {tale.key: ("fact A:1 could not be filed: KeyError: 'lost'",)}


def test_versions_of_two_kinds_are_not_compared() -> None:
    tale = Tale()
    a = tale.replica("A")
    a.write(W, to=1)
    a.write(W, 1, "01HX")
    a.write(C, "01HX", "01HY")

    assert check(tale.facts) == check(tale.facts[::-1])
    assert tale.check().verdicts == {tale.key: c.UNKNOWN}


def test_a_cancel_without_a_base_creates_nothing() -> None:
    tale = Tale()
    a = tale.replica("A")
    a.write(W, to=1)
    b = tale.replica("B")
    b.cancel(None, 2)
    assert tale.check().verdict == c.FINE

    alone = check(tale.facts[1:])

    assert alone.doubts == {
        tale.key: ("predecessor unknown: nobody reported what the cancel at v2 replaced",)
    }
    lost = [replace(fact, id="B:2") for fact in tale.facts[1:]]
    assert "facts of B are missing" in str(check(lost).doubts)


def test_a_base_of_another_kind_is_before_nothing() -> None:
    tale = Tale()
    a = tale.replica("A")
    a.write(W, to=1)
    a.write(W, 1, 2)
    a.write(C, "01HX", 3)

    report = tale.check()

    assert report.findings == ()
    assert report.doubts == {
        tale.key: ("the store gave versions of two kinds, which cannot be compared",)
    }


# --- order of arrival, also of what only a faulty store or sender tells


def older_base_tells_what_a_cancel_replaced(tale: Tale) -> None:
    a = tale.replica("A")
    a.cancel(3, 3, base_state=W)
    a.write(W, 1, 4, base_state=C)


def two_bases_tell_what_an_unknown_write_left(tale: Tale) -> None:
    a = tale.replica("A")
    a.write(c.FAILED, 2, 1, base_state=X)
    a.unknown(S, 4, version=2, base_state=C)
    a.write(W, 2, 5, base_state=S)


def an_execution_ends_twice(tale: Tale) -> None:
    a, b = tale.replica("A"), tale.replica("B")
    a.write(W, to=1)
    b.end(phase=c.CANCELLED)
    b.end()


@pytest.mark.parametrize(
    "happens",
    [
        older_base_tells_what_a_cancel_replaced,
        two_bases_tell_what_an_unknown_write_left,
        an_execution_ends_twice,
    ],
)
def test_facts_come_in_any_order(happens: Callable[[Tale], None]) -> None:
    tale = Tale()
    happens(tale)
    for facts in permutations(tale.facts):
        checker = Checker()
        for fact in facts:
            checker.add([fact])
        assert checker.report() == tale.check()


# --- cost


def test_one_fact_more_costs_the_same_however_long_the_task(monkeypatch: pytest.MonkeyPatch) -> None:
    judged = 0
    judge_cell = History._judge_cell

    def counting(self: History, *args: object) -> None:
        nonlocal judged
        judged += 1
        judge_cell(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(History, "_judge_cell", counting)
    tale = Tale()
    a = tale.replica("A")
    facts: list[Fact] = [a.start(), a.write(S, to=1)]
    facts += [a.write(W, version, version + 1) for version in range(1, 3001)]
    checker = Checker()

    per_fact = []
    for fact in facts:
        before = judged
        checker.add([fact])
        per_fact.append(judged - before)

    assert max(per_fact) <= 2


def test_late_facts_of_several_replicas_cost_little_more(monkeypatch: pytest.MonkeyPatch) -> None:
    judged = 0
    judge_cell = History._judge_cell

    def counting(self: History, *args: object) -> None:
        nonlocal judged
        judged += 1
        judge_cell(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(History, "_judge_cell", counting)
    tale = Tale()
    replicas = [tale.replica(name) for name in "ABC"]
    for narrator in replicas:
        narrator.start()
    replicas[0].write(S, to=1)
    for version in range(1, 3001):
        replicas[version % 3].write(W, version, version + 1, base_state=W if version > 1 else S)
    by_replica = [[f for f in tale.facts if f.replica == name] for name in "ABC"]
    checker = Checker()

    batches = 0
    for at in range(0, 1100, 20):
        for facts in by_replica:
            checker.add(facts[at : at + 20])
            batches += 1

    assert judged <= 8 * len(tale.facts)
    assert checker.report() == tale.check()
