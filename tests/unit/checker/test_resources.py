"""What resources tell of a task: it and what the executor tells are one history, in any order."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

from a2a_fencing import conventions as c
from a2a_fencing.checker import Report, check
from a2a_fencing.facts import Fact
from a2a_fencing.scoped import is_scoped, joined, scoped_from
from support.tale import Narrator, Tale


def resource_says(
    payments: Narrator, outcome: str, identity: str = "A:1", attempt: int = 1, **values: object
) -> Fact:
    """As the fence records it: under the name by which a resource knows the task."""
    return payments.tell(
        c.DISPATCH,
        task=scoped_from(payments.tale.key),
        origin=c.FROM_RESOURCE,
        phase=c.ENDED,
        name="payments",
        dispatch_id=identity,
        attempt=attempt,
        outcome=outcome,
        **values,
    )


def found(report: Report) -> list[tuple[str, str, str]]:
    return [(finding.rule, finding.severity, finding.certainty) for finding in report.findings]


def test_it_stands_in_the_history_of_the_task() -> None:
    tale = Tale()
    a, payments = tale.replica("A"), tale.replica("P")
    a.dispatch("A:1", key="order-17")
    resource_says(payments, c.ACCEPTED)
    assert {fact.task for fact in joined(tale.facts)} == {tale.key}
    assert set(tale.check().verdicts) == {tale.key}


def test_of_other_tasks_with_the_same_id_it_tells_nothing() -> None:
    ours, theirs = Tale(owner="alice"), Tale(owner="bob")
    resource_says(ours.replica("P"), c.ACCEPTED)
    theirs.replica("A").write(c.WORKING, to=1)
    facts = joined([*ours.facts, *theirs.facts])
    assert [is_scoped(fact.task) for fact in facts if fact.task] == [True, False]


def test_a_task_that_only_a_resource_tells_of_is_unknown() -> None:
    tale = Tale()
    resource_says(tale.replica("P"), c.ACCEPTED)
    report = tale.check()
    assert report.findings == ()
    (key,) = report.verdicts
    assert report.verdicts[key] == c.UNKNOWN
    assert report.doubts[key] == ("only a resource told of the task; nothing is known of its executor",)


def test_an_effect_after_the_end_is_critical_though_the_executor_could_not_tell() -> None:
    tale = Tale()
    a, b, payments = tale.replica("A"), tale.replica("B"), tale.replica("P")
    a.write(c.WORKING, to=1)
    b.cancel(1, 2)
    a.read(2, c.CANCELED)
    a.dispatch("A:3")
    a.dispatched(c.UNKNOWN, "A:3")
    assert found(tale.check()) == [(c.DISPATCH_AFTER_TERMINAL, c.WARNING, c.PROVEN)]
    accepted = resource_says(payments, c.ACCEPTED, "A:3")
    for facts in permutations(tale.facts):
        report = check(facts)
        assert found(report) == [(c.DISPATCH_AFTER_TERMINAL, c.CRITICAL, c.PROVEN)]
        assert accepted.id in report.findings[0].witness


def test_what_the_fence_refused_is_the_fence_working() -> None:
    tale = Tale()
    a, b, payments = tale.replica("A"), tale.replica("B"), tale.replica("P")
    a.write(c.WORKING, to=1)
    a.dispatch("A:2", key="order-17")
    b.cancel(1, 2)
    resource_says(payments, c.DISPATCH_REJECTED, "A:2", error_type="SupersededTokenError")
    a.dispatched(c.DISPATCH_REJECTED, "A:2", key="order-17")
    assert found(tale.check()) == []


def test_two_who_tell_of_one_attempt_tell_of_one_effect() -> None:
    tale = Tale()
    a, payments = tale.replica("A"), tale.replica("P")
    a.dispatch("A:1", key="order-17")
    resource_says(payments, c.ACCEPTED)
    a.dispatched(c.ACCEPTED, "A:1", key="order-17")
    for facts in permutations(tale.facts):
        assert found(check(facts)) == []


def test_a_second_effect_that_only_the_resource_knows_of() -> None:
    """The answer to the first attempt was lost, and the resource did it twice."""
    tale = Tale()
    a, payments = tale.replica("A"), tale.replica("P")
    a.dispatch("A:1", key="order-17")
    resource_says(payments, c.ACCEPTED)
    a.dispatched(c.UNKNOWN, "A:1", key="order-17")
    resource_says(payments, c.ACCEPTED, attempt=2)
    a.dispatched(c.ACCEPTED, "A:1", key="order-17", attempt=2)
    for facts in permutations(tale.facts):
        report = check(facts)
        assert found(report) == [(c.DOUBLE_EFFECT, c.CRITICAL, c.PROVEN)]
        (finding,) = report.findings
        assert finding.explanation == "charge-card with key order-17 was accepted twice: by A and by A"


def test_a_resource_that_repeats_its_answer_did_it_once() -> None:
    tale = Tale()
    a, payments = tale.replica("A"), tale.replica("P")
    a.dispatch("A:1", key="order-17")
    resource_says(payments, c.ACCEPTED)
    a.dispatched(c.UNKNOWN, "A:1", key="order-17")
    resource_says(payments, c.ACCEPTED, attempt=2, reason=c.REPLAYED)
    a.dispatched(c.ACCEPTED, "A:1", key="order-17", attempt=2)
    for facts in permutations(tale.facts):
        assert found(check(facts)) == []


def test_who_is_only_let_through_may_have_done_nothing() -> None:
    tale = Tale()
    a, payments = tale.replica("A"), tale.replica("P")
    a.dispatch("A:1", key="order-17")
    resource_says(payments, c.ACCEPTED, reason=c.ADMITTED)
    a.dispatched(c.UNKNOWN, "A:1", key="order-17")
    resource_says(payments, c.ACCEPTED, attempt=2, reason=c.ADMITTED)
    a.dispatched(c.ACCEPTED, "A:1", key="order-17", attempt=2)
    for facts in permutations(tale.facts):
        assert found(check(facts)) == []


def test_what_the_killed_executor_could_not_tell() -> None:
    """Nothing of its dispatch arrived but what the resource tells."""
    tale = Tale()
    a, sweeper, payments = tale.replica("A"), tale.replica("S"), tale.replica("P")
    a.write(c.WORKING, to=1)
    resource_says(payments, c.ACCEPTED, "A:9")
    sweeper.write(c.FAILED, 1, 2)
    report = tale.check()
    assert found(report) == []
    assert list(report.verdicts) == [tale.key]


def test_of_several_lives_it_belongs_to_the_one_of_its_dispatch() -> None:
    tale = Tale()
    a, b, payments = tale.replica("A"), tale.replica("B"), tale.replica("P")
    a.write(c.WORKING, to=1)
    a.dispatch("A:2", key="order-17")
    resource_says(payments, c.ACCEPTED, "A:2")
    a.delete()
    a.write(c.WORKING, to=1)
    b.cancel(1, 2)
    a.read(2, c.CANCELED)
    late = a.dispatch("A:6", key="order-17")
    assert late.id == "A:6"
    resource_says(payments, c.ACCEPTED, "A:6")
    report = tale.check()
    # Suspected, because it is inferred which facts are of which life. And the other task under this id
    # is another action: once each.
    assert found(report) == [(c.DISPATCH_AFTER_TERMINAL, c.CRITICAL, c.SUSPECTED)]
    assert {doubt for doubts in report.doubts.values() for doubt in doubts} == set()


def test_of_several_lives_and_an_unknown_dispatch_it_is_said_that_nobody_knows() -> None:
    tale = Tale()
    a, payments = tale.replica("A"), tale.replica("P")
    a.write(c.WORKING, to=1)
    a.delete()
    a.write(c.WORKING, to=1)
    resource_says(payments, c.ACCEPTED, "A:9")
    report = tale.check()
    assert report.findings == ()
    assert "1 facts could belong to more than one incarnation" in {
        doubt for doubts in report.doubts.values() for doubt in doubts
    }


def test_nothing_but_keys_changes() -> None:
    tale = Tale()
    tale.replica("A").write(c.WORKING, to=1)
    fact = resource_says(tale.replica("P"), c.ACCEPTED)
    assert joined(tale.facts)[-1] == replace(fact, task=tale.key)
    assert joined([fact], known=[tale.key]) == [replace(fact, task=tale.key)]
    assert joined([fact]) == [fact]
