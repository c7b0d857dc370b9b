"""What decides each rule beyond the cases: the nearest history that is right stays quiet."""

from __future__ import annotations

import pytest

from a2a_fencing import conventions as c
from a2a_fencing.checker import RULES, Finding, Report, check
from support.tale import Tale

W, C, X, F, S, I = c.WORKING, c.COMPLETED, c.CANCELED, c.FAILED, c.SUBMITTED, c.INPUT_REQUIRED  # noqa: E741


def of(report: Report, rule: str) -> list[Finding]:
    return [finding for finding in report.findings if finding.rule == rule]


def only(report: Report, rule: str) -> Finding:
    (finding,) = of(report, rule)
    return finding


def test_every_rule_says_what_it_is() -> None:
    assert set(RULES) == set(c.RULES)
    assert all(rule.name == name and rule.statement and rule.guarantee for name, rule in RULES.items())


# --- terminal-overwritten, terminal-mutated


@pytest.mark.parametrize("end", sorted(c.TERMINAL_STATES))
@pytest.mark.parametrize("then", [W, I, C, F])
def test_a_terminal_state_may_only_be_followed_by_itself(end: str, then: str) -> None:
    tale = Tale()
    a = tale.replica("A")
    a.write(end, to=1)
    a.write(then, 1, 2)

    rule = c.TERMINAL_MUTATED if end == then else c.TERMINAL_OVERWRITTEN
    assert [f.rule for f in tale.check().findings] == [rule]


@pytest.mark.parametrize("state", [S, W, I, c.AUTH_REQUIRED])
def test_any_state_may_follow_one_that_is_not_terminal(state: str) -> None:
    tale = Tale()
    a = tale.replica("A")
    a.write(state, to=1)
    a.write(C, 1, 2)

    assert tale.check().findings == ()


def test_a_state_the_writer_did_not_know_is_known_from_who_stored_it() -> None:
    tale = Tale()
    a, b = tale.replica("A"), tale.replica("B")
    a.write(C, to=1)
    b.write(W, 1, 2, base_state=None)

    finding = only(tale.check(), c.TERMINAL_OVERWRITTEN)
    assert finding.certainty == c.PROVEN
    assert finding.witness == ("A:1", "B:1")


def test_what_only_another_replica_knew_a_missing_fact_could_refute() -> None:
    """The task may have been deleted and created again in between: nobody here could tell."""
    tale = Tale()
    a, b = tale.replica("A"), tale.replica("B")
    a.write(C, to=1)
    lost = b.heartbeat()
    b.write(W, 1, 2, base_state=None)

    report = check(fact for fact in tale.facts if fact is not lost)

    assert only(report, c.TERMINAL_OVERWRITTEN).certainty == c.SUSPECTED


def test_each_end_that_is_rewritten_is_told_once() -> None:
    tale = Tale()
    a = tale.replica("A")
    for version, state in enumerate((C, C, C, F, F, W, C, C), 1):
        a.write(state, version - 1 or None, version)

    keys = [f.key for f in of(tale.check(), c.TERMINAL_MUTATED)]
    assert keys == ["v2", "v5", "v8"]


def test_two_writes_that_may_be_the_one_that_landed_are_both_named() -> None:
    tale = Tale()
    a, b, d = tale.replica("A"), tale.replica("B"), tale.replica("D")
    a.write(C, to=1)
    a.unknown(W, 1)
    b.read(1, C)
    b.unknown(W, 1)
    d.read(2, W)

    finding = only(tale.check(), c.TERMINAL_OVERWRITTEN)
    assert finding.certainty == c.SUSPECTED
    assert finding.explanation == (
        "COMPLETED (v1, A) was overwritten by WORKING (v2, A or B), whose writer did not learn that it"
        " was stored"
    )


def test_a_write_of_unknown_outcome_that_nobody_saw_leaves_a_doubt() -> None:
    tale = Tale()
    a = tale.replica("A")
    a.write(C, to=1)
    a.unknown(W, 1)

    report = tale.check()

    assert report.findings == ()
    assert report.doubts == {tale.key: ("A does not know whether its WORKING on v1 was stored",)}


def test_a_write_of_unknown_outcome_before_the_end_is_legal() -> None:
    tale = Tale()
    a, b = tale.replica("A"), tale.replica("B")
    a.write(S, to=1)
    a.unknown(W, 1)
    b.read(2, W)
    b.write(C, 2, 3)

    report = tale.check()

    assert report.findings == ()
    assert report.verdict == c.FINE


def test_a_write_of_unknown_outcome_whose_place_another_took_is_lost() -> None:
    tale = Tale()
    a, b = tale.replica("A"), tale.replica("B")
    a.write(S, to=1)
    b.read(1, S)
    a.unknown(W, 1)
    b.write(W, 1, 2)

    assert tale.check().verdict == c.FINE


def test_a_write_of_unknown_outcome_that_its_writer_found_missing_is_lost() -> None:
    tale = Tale()
    a = tale.replica("A")
    a.write(S, to=1)
    a.unknown(W, 1)
    a.read(1, S, c.RESOLUTION)

    assert tale.check().verdict == c.FINE


def test_overlapping_saves_without_versions_are_only_suspected() -> None:
    tale = Tale(store="plain")
    a = tale.replica("A")
    a.unversioned(C)
    late = a.unversioned(W, base_state=C, duration_ns=5_000_000)

    finding = only(tale.check(), c.TERMINAL_OVERWRITTEN)
    assert (finding.certainty, finding.key) == (c.SUSPECTED, late.id)


def test_the_clocks_of_two_replicas_suspect_what_no_version_proves() -> None:
    versioned, plain = Tale(), Tale(store="plain")
    a, b = versioned.replica("A"), versioned.replica("B", ahead_ms=60_000)
    a.write(S, to=1)
    b.read(1, S)
    plain.now = versioned.now
    for narrator in (a, b):
        narrator.key, narrator.tale = plain.key, plain
    a.unversioned(C)
    plain.wait(100)
    b.unversioned(W)

    report = check(versioned.facts + plain.facts)

    assert only(report, c.TERMINAL_OVERWRITTEN).explanation == (
        "COMPLETED (A) was overwritten by WORKING (B), by the clocks, at most 100 s apart"
    )
    assert only(report, c.TERMINAL_OVERWRITTEN).certainty == c.SUSPECTED
    assert of(check(plain.facts), c.TERMINAL_OVERWRITTEN) == []  # clocks nobody has measured


# --- answers, streams, notifications


def test_an_answer_is_contradicted_by_a_state_stored_after_it() -> None:
    tale = Tale()
    a, b = tale.replica("A"), tale.replica("B")
    a.write(C, to=1)
    b.answer(C, version=1)
    a.write(W, 1, 2)

    finding = only(tale.check(), c.ANSWER_CONTRADICTED)
    assert finding.explanation == "B told a client COMPLETED (GetTask), but the task is WORKING (v2, A)"


def test_an_answer_ahead_of_what_is_known_is_not_contradicted() -> None:
    tale = Tale()
    a, b = tale.replica("A"), tale.replica("B")
    a.write(W, to=1)
    b.answer(C)  # whoever wrote it has not reported yet

    assert of(tale.check(), c.ANSWER_CONTRADICTED) == []


def test_an_answer_nobody_stored_contradicts_the_end_as_far_as_can_be_told() -> None:
    tale = Tale()
    a, b = tale.replica("A"), tale.replica("B")
    a.write(C, to=1)
    b.answer(X)

    assert only(tale.check(), c.ANSWER_CONTRADICTED).certainty == c.SUSPECTED


def test_an_answer_that_came_true_again_stands() -> None:
    tale = Tale()
    a = tale.replica("A")
    a.write(C, to=1)
    a.answer(C)
    a.write(W, 1, 2)
    a.write(C, 2, 3)

    assert of(tale.check(), c.ANSWER_CONTRADICTED) == []


def test_without_versions_the_replica_s_own_order_contradicts() -> None:
    tale = Tale(store="plain")
    a = tale.replica("A")
    a.unversioned(C)
    a.answer(C)
    a.unversioned(W, base_state=C)

    assert only(tale.check(), c.ANSWER_CONTRADICTED).certainty == c.PROVEN


@pytest.mark.parametrize("ending", [c.END_INTERRUPTED, c.END_MESSAGE, c.END_CLOSED])
def test_a_stream_that_ends_as_it_may_is_not_cut(ending: str) -> None:
    tale = Tale()
    a = tale.replica("A")
    a.write(C, to=1)
    a.stream_end(ending, W)

    assert tale.check().findings == ()


def test_a_stream_cut_before_the_task_ended_is_not_cut_short() -> None:
    tale = Tale()
    a = tale.replica("A")
    a.write(W, to=1)
    a.stream_end(c.END_CUT, W)
    a.write(C, 1, 2)

    assert tale.check().findings == ()


def test_a_stream_cut_while_the_task_runs_is_not_either() -> None:
    tale = Tale()
    a = tale.replica("A")
    a.write(W, to=1)
    a.stream_end(c.END_CUT, W)

    assert tale.check().findings == ()


def test_a_stream_of_a_task_that_goes_on_after_all_is_not_either() -> None:
    tale = Tale()
    a = tale.replica("A")
    a.write(C, to=1)
    a.stream_end(c.END_CUT, W)
    a.write(W, 1, 2)

    assert of(tale.check(), c.STREAM_CUT) == []


def test_a_stream_of_another_replica_is_cut_by_the_clocks() -> None:
    tale = Tale()
    a, b = tale.replica("A"), tale.replica("B")
    a.write(W, to=1)
    b.read(1, W)
    a.write(C, 1, 2)
    tale.wait(100)
    b.stream_end(c.END_CUT, W)

    finding = only(tale.check(), c.STREAM_CUT)
    assert finding.certainty == c.SUSPECTED
    assert finding.explanation == (
        "a stream of B ended (cut) without telling that the task was COMPLETED (v2, A), by the clocks,"
        " at most 1 ms apart"
    )


def test_a_push_of_the_end_is_all_it_takes() -> None:
    tale = Tale()
    a = tale.replica("A")
    a.write(W, to=1)
    a.push(W)
    a.write(C, 1, 2)
    a.push(C)

    assert tale.check().findings == ()


def test_a_push_that_was_not_delivered_is_none() -> None:
    tale = Tale()
    a = tale.replica("A")
    a.write(W, to=1)
    a.push(W)
    a.write(C, 1, 2)
    a.push(C, outcome=c.DISPATCH_FAILED)

    only(tale.check(), c.PUSH_CONTRADICTED)


def test_a_late_push_of_an_old_state_contradicts_the_end() -> None:
    tale = Tale()
    a = tale.replica("A")
    a.write(W, to=1)
    a.write(C, 1, 2)
    a.push(C)
    a.push(W)

    finding = only(tale.check(), c.PUSH_CONTRADICTED)
    assert finding.certainty == c.PROVEN
    assert (
        finding.explanation == "the last notification said WORKING (A), after that of COMPLETED (v2, A)"
    )


# --- executions


def test_two_executions_on_one_replica_overlap_by_its_own_order() -> None:
    tale = Tale()
    a = tale.replica("A")
    a.start("one")
    a.start("two")
    a.end("one")
    a.end("two")

    finding = only(tale.check(), c.CONCURRENT_EXECUTION)
    assert finding.certainty == c.PROVEN
    assert finding.explanation == "A began a second execution while the first one was running"


def test_executions_one_after_the_other_do_not_overlap() -> None:
    tale = Tale()
    a, b = tale.replica("A"), tale.replica("B")
    for name, narrator, version in (("one", a, 1), ("two", a, 2), ("three", b, 3)):
        narrator.start(name)
        narrator.write(I, version - 1 or None, version, base_state=I if version > 1 else None)
        narrator.end(name)

    assert tale.check().findings == ()


def test_two_replicas_overlap_by_the_order_of_versions() -> None:
    tale = Tale()
    a, b = tale.replica("A"), tale.replica("B", ahead_ms=-60_000)
    a.start("one")
    a.write(W, to=1)
    b.start("two")
    b.read(1, W, c.EXECUTION_START)
    b.write(W, 1, 2)
    b.end("two")
    a.read(2, W)
    a.write(C, 2, 3)
    a.end("one")

    finding = only(tale.check(), c.CONCURRENT_EXECUTION)
    assert finding.certainty == c.PROVEN
    assert finding.explanation == (
        "A and B executed the task at the same time: v1 by A, v1 seen by B, v3 by A"
    )


def test_two_replicas_that_saw_one_version_may_have_done_so_one_after_the_other() -> None:
    tale = Tale()
    a, b = tale.replica("A"), tale.replica("B", ahead_ms=-60_000)
    a.start("one")
    a.write(I, to=1)
    a.read(1, I)
    a.end("one")
    b.start("two")
    b.read(1, I, c.EXECUTION_START)
    b.write(C, 1, 2)
    b.end("two")

    assert tale.check().findings == ()


def test_two_replicas_overlap_by_the_clocks_when_these_are_measured() -> None:
    tale = Tale()
    a, b = tale.replica("A"), tale.replica("B")
    a.write(W, to=1)
    b.read(1, W)
    b.write(W, 1, 2)
    a.read(2, W)
    a.start("one")
    tale.wait(50)
    b.start("two")
    tale.wait(50)
    a.end("one")
    b.end("two")

    finding = only(tale.check(), c.CONCURRENT_EXECUTION)
    assert finding.certainty == c.SUSPECTED
    assert finding.explanation == (
        "A and B executed the task at the same time, by the clocks, at most 1 ms apart"
    )


def test_an_execution_whose_end_is_lost_accuses_nobody() -> None:
    tale = Tale()
    a = tale.replica("A")
    a.start("one")
    a.write(I, to=1)
    end = a.end("one")
    a.start("two")
    a.write(C, 1, 2)
    a.end("two")

    assert check(fact for fact in tale.facts if fact is not end).findings == ()


def test_a_cancel_stops_an_executor_that_is_refused() -> None:
    tale = Tale()
    a, b = tale.replica("A"), tale.replica("B")
    a.start()
    a.write(W, to=1)
    b.read(1, W)
    b.cancel(1, 2)
    b.answer(X, c.CANCEL_TASK)
    a.refused(W, 1)
    a.read(2, X)
    a.end(phase=c.CANCELLED)

    assert tale.check().findings == ()


def test_an_executor_that_swallows_its_cancellation_ran_on() -> None:
    tale = Tale()
    a = tale.replica("A")
    a.start()
    a.write(W, to=1)
    a.cancel(1, 2, origin=c.FROM_CANCEL_LOCAL)
    a.answer(X, c.CANCEL_TASK)
    a.end(phase=c.FINISHED)

    finding = only(tale.check(), c.CANCEL_INEFFECTIVE)
    assert finding.explanation == (
        "A answered a cancel with success, but the executor there ran on to its end"
    )


def test_an_executor_that_takes_a_moment_to_be_cancelled_did_not_run_on() -> None:
    tale = Tale()
    a = tale.replica("A")
    a.start()
    a.write(W, to=1)
    a.cancel(1, 2, origin=c.FROM_CANCEL_LOCAL)
    a.answer(X, c.CANCEL_TASK)
    a.end(phase=c.CANCELLED)

    assert tale.check().findings == ()


def test_a_cancel_that_left_the_task_running_is_ineffective() -> None:
    tale = Tale()
    a, b = tale.replica("A"), tale.replica("B")
    a.write(W, to=1)
    b.read(1, W)
    b.cancel(1, 2)
    b.answer(X, c.CANCEL_TASK)
    a.write(W, 2, 3, origin=c.DIRECT, base_state=X)

    finding = only(tale.check(), c.CANCEL_INEFFECTIVE)
    assert finding.explanation == "B answered a cancel with success, but the task is WORKING (v3, A)"


def test_a_get_that_tells_canceled_is_no_cancel() -> None:
    tale = Tale()
    a = tale.replica("A")
    a.write(X, to=1)
    a.answer(X, c.GET_TASK)
    a.write(W, 1, 2, base_state=X)

    assert of(tale.check(), c.CANCEL_INEFFECTIVE) == []


@pytest.mark.parametrize("state", [C, I, c.AUTH_REQUIRED])
def test_a_task_that_ended_or_waits_is_not_abandoned(state: str) -> None:
    tale = Tale()
    a = tale.replica("A")
    a.start()
    a.write(state, to=1)
    a.end()

    assert tale.check().findings == ()


def test_a_task_whose_executor_returned_too_early_is_abandoned() -> None:
    tale = Tale()
    a = tale.replica("A")
    a.start()
    a.write(W, to=1)
    a.end()

    finding = only(tale.check(), c.ABANDONED)
    assert finding.certainty == c.PROVEN
    assert finding.explanation == (
        "the task is WORKING (v1, A) and nobody executes it: the last execution returned on A"
    )


def test_a_task_that_another_replica_executes_is_not_abandoned() -> None:
    tale = Tale()
    a, b = tale.replica("A"), tale.replica("B")
    a.start()
    a.write(W, to=1)
    a.end()
    b.start()

    assert tale.check().findings == ()


def test_a_replica_that_says_it_executes_nothing_has_abandoned_its_task() -> None:
    tale = Tale()
    a = tale.replica("A")
    a.start()
    a.write(W, to=1)
    a.heartbeat(executing=1)
    assert tale.check().findings == ()

    a.heartbeat(executing=0)
    only(tale.check(), c.ABANDONED)


def test_a_name_that_two_live_replicas_share_replaces_nobody() -> None:
    tale = Tale()
    a, b = tale.replica("A"), tale.replica("B")
    a.heartbeat(replica_name="api", executing=0)
    a.start()
    a.write(W, to=1)
    b.heartbeat(replica_name="api", started_unix_nano=tale.now)
    a.heartbeat(replica_name="api", executing=1)

    assert tale.check().findings == ()


# --- dispatches


def test_a_dispatch_after_another_writer_finished_the_task() -> None:
    tale = Tale()
    a, b = tale.replica("A"), tale.replica("B")
    a.start()
    a.write(W, to=1)
    b.read(1, W)
    b.cancel(1, 2)
    a.read(2, X)
    a.dispatch("d1")
    a.dispatched(c.DISPATCH_REJECTED, "d1")
    a.dispatch("d2")
    a.dispatched(c.ACCEPTED, "d2")

    accepted, rejected = of(tale.check(), c.DISPATCH_AFTER_TERMINAL)
    assert (accepted.severity, accepted.certainty) == (c.CRITICAL, c.PROVEN)
    assert (rejected.severity, rejected.certainty) == (c.WARNING, c.PROVEN)
    assert accepted.witness == ("B:2", "A:3", "A:6", "A:7")
    assert accepted.explanation == (
        "A dispatched charge-card (accepted) after the task was CANCELED (v2, B)"
    )


def test_a_dispatch_in_one_process_with_the_cancel_is_ordered_by_its_numbers() -> None:
    tale = Tale()
    a = tale.replica("A")
    a.start()
    a.write(W, to=1)
    a.write(F, 1, 2, origin=c.DIRECT, writer="A/2")
    a.dispatch(version=1, state=W)
    a.dispatched(c.ACCEPTED)

    finding = only(tale.check(), c.DISPATCH_AFTER_TERMINAL)
    assert (finding.severity, finding.certainty) == (c.CRITICAL, c.PROVEN)


def test_a_dispatch_elsewhere_is_late_by_the_clocks() -> None:
    tale = Tale()
    a, b = tale.replica("A"), tale.replica("B")
    a.write(W, to=1)
    b.read(1, W)
    b.write(W, 1, 2)
    a.read(2, W)
    b.cancel(2, 3)
    tale.wait(100)
    a.dispatch()

    finding = only(tale.check(), c.DISPATCH_AFTER_TERMINAL)
    assert (finding.severity, finding.certainty) == (c.WARNING, c.SUSPECTED)
    assert finding.explanation == (
        "A dispatched charge-card (outcome unknown) after the task was CANCELED (v3, B), by the clocks,"
        " at most 1 ms apart"
    )


def test_a_dispatch_before_the_end_is_in_time() -> None:
    tale = Tale()
    a = tale.replica("A")
    a.write(W, to=1)
    a.dispatch()
    a.cancel(1, 2)
    a.dispatched(c.ACCEPTED)

    assert of(tale.check(), c.DISPATCH_AFTER_TERMINAL) == []


def test_an_executor_may_still_tell_the_world_that_it_has_finished() -> None:
    tale = Tale()
    a, b = tale.replica("A"), tale.replica("B")
    a.write(W, to=1)
    a.write(C, 1, 2)
    b.read(2, C)
    b.write(C, 2, 3, origin=c.DIRECT)  # somebody appends to the history
    a.read(3, C)
    a.dispatch()
    a.dispatched(c.ACCEPTED)

    assert of(tale.check(), c.DISPATCH_AFTER_TERMINAL) == []


def test_an_executor_may_do_so_without_versions_too() -> None:
    tale = Tale(store="plain")
    a = tale.replica("A")
    a.unversioned(C)
    a.dispatch()
    a.dispatched(c.ACCEPTED)

    assert of(tale.check(), c.DISPATCH_AFTER_TERMINAL) == []


def test_an_end_that_may_be_the_executor_s_own_accuses_nobody() -> None:
    tale = Tale()
    a = tale.replica("A")
    a.write(W, to=1)
    a.unknown(C, 1)
    a.read(2, C, c.RESOLUTION)
    a.dispatch()

    assert of(tale.check(), c.DISPATCH_AFTER_TERMINAL) == []


def test_a_dispatch_of_nobody_s_execution_is_only_suspected() -> None:
    tale = Tale()
    a = tale.replica("A")
    a.write(W, to=1)
    a.cancel(1, 2)
    a.dispatch(unparented=True)

    assert only(tale.check(), c.DISPATCH_AFTER_TERMINAL).certainty == c.SUSPECTED


def test_one_logical_key_accepted_twice_is_a_double_effect() -> None:
    tale = Tale()
    a, b = tale.replica("A"), tale.replica("B")
    a.dispatch("d1", key="order-17")
    a.dispatched(c.ACCEPTED, "d1", key="order-17")
    b.dispatch("d2", key="order-17")
    b.dispatched(c.ACCEPTED, "d2", key="order-17")

    finding = only(tale.check(), c.DOUBLE_EFFECT)
    assert (finding.severity, finding.certainty) == (c.CRITICAL, c.PROVEN)
    assert finding.explanation == "charge-card with key order-17 was accepted twice: by A and by B"


def test_attempts_of_which_one_is_accepted_have_one_effect() -> None:
    tale = Tale()
    a = tale.replica("A")
    for attempt, outcome in enumerate((c.UNKNOWN, c.DISPATCH_FAILED, c.ACCEPTED), 1):
        a.dispatched(outcome, "d1", key="order-17", attempt=attempt)
    a.dispatched(c.ACCEPTED, "d2", key="order-18")
    a.dispatched(c.ACCEPTED, "d3")
    a.dispatched(c.ACCEPTED, "d4")

    report = tale.check()

    assert report.findings == ()
    assert report.verdict == c.FINE


# --- versions


def test_a_lost_commit_that_is_not_retried_is_applied_once() -> None:
    tale = Tale()
    a = tale.replica("A")
    a.write(W, to=1)
    a.refused(W, 1, c.OWN_COMMIT, attempt=2, version=2, event_kind=c.ARTIFACT_EVENT)
    a.read(2, W, c.REFUSAL_PROBE)
    a.write(C, 2, 3)

    report = tale.check()

    assert report.findings == ()
    assert report.verdict == c.FINE


def test_a_retry_that_is_not_marked_as_one_is_only_suspected() -> None:
    tale = Tale()
    a = tale.replica("A")
    a.write(W, to=1)
    a.unknown(W, 1, event_kind=c.ARTIFACT_EVENT)
    a.read(2, W, c.RESOLUTION)
    a.write(W, 2, 3, event_kind=c.ARTIFACT_EVENT)

    assert only(tale.check(), c.DOUBLE_APPLY).certainty == c.SUSPECTED


def test_a_writer_that_does_not_report_is_told_by_the_version_it_left() -> None:
    tale = Tale()
    a = tale.replica("A")
    a.write(W, to=1)
    a.read(3, W)
    a.write(C, 3, 4)

    report = tale.check()

    finding = only(report, c.UNSEEN_WRITER)
    assert (finding.key, finding.certainty) == ("v3", c.SUSPECTED)
    assert finding.explanation == "v3 was written by nobody who reports; A found it stored"


def test_a_state_that_moved_without_a_version_is_told_by_who_read_it() -> None:
    tale = Tale()
    a, b = tale.replica("A"), tale.replica("B")
    a.write(W, to=1)
    b.read(1, X)

    finding = only(tale.check(), c.UNSEEN_WRITER)
    assert (finding.key, finding.certainty) == ("v1", c.PROVEN)
    assert finding.witness == ("A:1", "B:1")


@pytest.mark.parametrize("outcome", ["accepted", "unknown"])
def test_a_state_that_moved_where_the_task_was_created_twice_may_be_another_life_s(outcome: str) -> None:
    """What was deleted between them nobody told; the versions began anew."""
    tale = Tale()
    a, b = tale.replica("A"), tale.replica("B")
    a.write(S, to=1)
    a.write(W, 1, 2)
    b.read(1, C)
    if outcome == "accepted":
        a.write(C, to=1, base_state=W)
    else:
        a.unknown(C, None)

    told = {(finding.rule, finding.certainty) for finding in tale.check().findings}
    assert (c.UNSEEN_WRITER, c.PROVEN) not in told
    assert told & {(c.UNSEEN_WRITER, c.SUSPECTED), (c.VERSION_FORK, c.SUSPECTED)}


def test_a_first_write_that_was_lost_and_tried_again_is_no_second_creation() -> None:
    tale = Tale()
    a, b = tale.replica("A"), tale.replica("B")
    a.unknown(S, None)
    a.write(S, to=1)
    b.read(1, C)

    assert only(tale.check(), c.UNSEEN_WRITER).certainty == c.PROVEN


def test_a_version_may_be_a_silent_replica_s() -> None:
    tale = Tale()
    a, b = tale.replica("A"), tale.replica("B")
    b.heartbeat()
    a.write(W, to=1)
    a.read(2, W)

    report = tale.check()

    assert report.findings == ()
    assert report.verdict == c.UNKNOWN

    b.heartbeat()  # B has reported past it, and did not write it
    only(tale.check(), c.UNSEEN_WRITER)


def test_a_refusal_by_a_rival_that_has_not_reported_leaves_a_doubt() -> None:
    tale = Tale()
    a = tale.replica("A")
    a.write(W, to=1)
    a.refused(W, 1)

    assert tale.check().doubts == {
        tale.key: ("a rival moved on from v1, and its write was not reported",)
    }


def test_a_cancel_over_a_hole_replaced_nobody_knows_what() -> None:
    tale = Tale()
    a, b = tale.replica("A"), tale.replica("B")
    a.write(C, to=1)
    b.cancel(1, 3, base_state=C)

    report = tale.check()

    assert of(report, c.TERMINAL_OVERWRITTEN) == []
    assert report.verdicts == {tale.key: c.UNKNOWN}


def test_a_store_with_both_kinds_of_writes_is_not_called_unfenced() -> None:
    tale = Tale()
    a = tale.replica("A")
    a.write(W, to=1)
    a.unversioned(W, base_state=W)

    assert of(tale.check(), c.UNFENCED_STORE) == []
