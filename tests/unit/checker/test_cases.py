"""Every sequence of CASES.md that the checker decides: what must be found, and nothing else."""

from __future__ import annotations

import pytest

from a2a_fencing import conventions as c
from a2a_fencing.checker import Report, check
from a2a_fencing.facts import TaskKey
from support.tale import MS, Tale

W, C, X, F, S = c.WORKING, c.COMPLETED, c.CANCELED, c.FAILED, c.SUBMITTED
PROVEN, SUSPECTED = c.PROVEN, c.SUSPECTED


def found(report: Report) -> list[tuple[str, str, str]]:
    """Rule, certainty and key of each finding, most severe first."""
    return [(f.rule, f.certainty, f.key) for f in report.findings]


def sentences(report: Report) -> list[str]:
    return [f.explanation for f in report.findings]


# --- must be found


def test_1_an_executor_emits_working_after_completed() -> None:
    tale = Tale()
    a = tale.replica("A")
    a.write(S, to=1)
    a.write(W, 1, 2)
    a.write(C, 2, 3)
    a.write(W, 3, 4)

    report = tale.check()

    assert found(report) == [(c.TERMINAL_OVERWRITTEN, PROVEN, "v4")]
    assert sentences(report) == ["COMPLETED (v3, A) was overwritten by WORKING (v4, A)"]
    assert report.findings[0].witness == ("A:3", "A:4")
    assert report.findings[0].severity == c.CRITICAL
    assert report.verdict == c.VIOLATED


def test_2_a_remote_cancel_is_overwritten_by_the_next_queued_event() -> None:
    tale = Tale()
    a, b = tale.replica("A"), tale.replica("B")
    a.start()
    a.write(S, to=1)
    a.write(W, 1, 2)
    b.read(2, W)
    b.cancel(2, 3)
    b.answer(X, c.CANCEL_TASK)
    a.refused(W, 2, event_kind=c.ARTIFACT_EVENT)
    a.read(3, X)
    a.drop(c.STALE_EXECUTOR)
    a.write(C, 3, 4)
    a.end()
    a.stream_end(c.END_TERMINAL, X)

    report = tale.check()

    assert found(report) == [
        (c.ANSWER_CONTRADICTED, PROVEN, X),
        (c.TERMINAL_OVERWRITTEN, PROVEN, "v4"),
        (c.CANCEL_INEFFECTIVE, PROVEN, "ran on"),
    ]
    assert sentences(report)[:2] == [
        "B told a client CANCELED (CancelTask), but the task ended COMPLETED (v4, A)",
        "CANCELED (v3, B) was overwritten by COMPLETED (v4, A)",
    ]


def test_3_a_history_append_without_event_brings_working_back() -> None:
    tale = Tale()
    h, b = tale.replica("H"), tale.replica("B")
    h.write(S, to=1)
    h.write(W, 1, 2)
    b.read(2, W)
    b.cancel(2, 3)
    h.write(W, 3, 4, base_state=None, event_kind=None, origin=c.DIRECT)

    assert found(tale.check()) == [(c.TERMINAL_OVERWRITTEN, PROVEN, "v4")]


def test_4_a_store_that_hands_out_its_live_object() -> None:
    tale = Tale(store="InMemoryTaskStore#1")
    a = tale.replica("A")
    a.unversioned(S)
    a.unversioned(W, base_state=S)
    a.unversioned(X, base_state=W, origin=c.FROM_CANCEL_LOCAL)
    late = a.unversioned(C, base_state=X)

    report = tale.check()

    assert found(report) == [
        (c.TERMINAL_OVERWRITTEN, PROVEN, late.id),
        (c.UNFENCED_STORE, PROVEN, "InMemoryTaskStore#1"),
    ]


def test_5_a_failure_handler_writes_failed_over_completed() -> None:
    tale = Tale()
    a, b = tale.replica("A"), tale.replica("B")
    a.write(S, to=1)
    a.write(W, 1, 2)
    b.read(2, W)
    b.write(C, 2, 3)
    a.read(3, C)
    a.write(F, 3, 4, origin=c.FROM_CONSUMER_FAILURE)

    report = tale.check()

    assert found(report) == [(c.TERMINAL_OVERWRITTEN, PROVEN, "v4")]
    assert sentences(report) == ["COMPLETED (v3, B) was overwritten by FAILED (v4, A)"]


def test_6_a_commit_whose_answer_is_lost_is_applied_twice() -> None:
    tale = Tale()
    a = tale.replica("A")
    artifact = {"event_kind": c.ARTIFACT_EVENT}
    a.write(S, to=1)
    a.write(W, 1, 2)
    a.unknown(W, 2, **artifact)
    a.refused(W, 2, c.OWN_COMMIT, attempt=2, version=3, **artifact)
    a.read(3, W, c.REFUSAL_PROBE)
    a.write(W, 3, 4, attempt=3, **artifact)
    a.write(C, 4, 5)

    report = tale.check()

    assert found(report) == [(c.DOUBLE_APPLY, PROVEN, "v3")]
    assert sentences(report) == [
        "A stored one artifact-update twice: at v3, whose answer was lost, and again at v4"
    ]
    assert report.findings[0].witness == ("A:3", "A:4", "A:6")


def test_7_two_conflicts_in_a_row_leave_the_task_to_nobody() -> None:
    tale = Tale()
    a, b = tale.replica("A"), tale.replica("B")
    a.start()
    a.write(S, to=1)
    a.write(W, 1, 2)
    b.read(2, W)
    b.write(W, 2, 3, origin=c.DIRECT)
    a.refused(W, 2)
    a.read(3, W)
    b.write(W, 3, 4, origin=c.DIRECT)
    a.refused(W, 3)
    b.write(W, 4, 5, origin=c.DIRECT)
    a.end(phase=c.CANCELLED)
    a.refused(F, 4, origin=c.FROM_CONSUMER_FAILURE)

    report = check(tale.facts, now_unix_nano=tale.now)  # at once: no time to settle

    assert found(report) == [(c.ABANDONED, PROVEN, "")]
    assert sentences(report) == [
        "the task is WORKING (v5, B) and nobody executes it: the last execution was cancelled on A"
    ]


def test_8_a_late_event_dropped_by_a_closed_queue_is_no_finding() -> None:
    tale = Tale()
    a = tale.replica("A")
    a.write(S, to=1)
    a.write(C, 1, 2)
    a.drop(c.QUEUE_CLOSED, queue=c.AGENT_QUEUE)

    assert tale.check().verdict == c.FINE


def test_9_an_evicted_subscriber_never_hears_the_end() -> None:
    tale = Tale()
    a = tale.replica("A")
    a.write(S, to=1)
    a.write(W, 1, 2)
    a.drop(c.SUBSCRIBER_EVICTED, queue=c.SUBSCRIBER_QUEUE)
    a.write(C, 2, 3)
    ended = a.stream_end(c.END_EVICTED, W)

    report = tale.check()

    assert found(report) == [(c.STREAM_CUT, PROVEN, ended.id)]
    assert sentences(report) == [
        "a stream of A ended (evicted as too slow) without telling that the task was COMPLETED (v3, A)"
    ]


def test_10_nobody_pushes_a_remote_cancel() -> None:
    tale = Tale()
    a, b = tale.replica("A"), tale.replica("B")
    a.write(S, to=1)
    a.push(S)
    a.write(W, 1, 2)
    a.push(W)
    b.read(2, W)
    b.cancel(2, 3)

    report = tale.check()

    assert found(report) == [(c.PUSH_CONTRADICTED, PROVEN, X)]
    assert sentences(report) == [
        "the last notification said WORKING (A); nobody was notified of CANCELED (v3, B)"
    ]


def test_11_a_process_dies_while_it_works() -> None:
    tale = Tale()
    a, b = tale.replica("A"), tale.replica("B")
    a.heartbeat()
    a.start()
    a.write(W, to=1)
    for _ in range(10):
        tale.wait(5000)
        b.heartbeat()
    b.read(1, W, c.SUBSCRIBER_SNAPSHOT)

    report = tale.check()

    assert found(report) == []
    assert report.verdicts == {tale.key: c.UNKNOWN}
    assert report.doubts == {tale.key: ("a executed the task and has been silent since",)}


def test_11_a_process_that_came_back_under_its_name_had_died() -> None:
    tale = Tale()
    a, b = tale.replica("A-first"), tale.replica("A-second")
    a.heartbeat(replica_name="api-0", executing=0)
    a.start()
    a.write(W, to=1)
    tale.wait(5000)
    b.heartbeat(replica_name="api-0", started_unix_nano=tale.now)

    report = tale.check()

    assert found(report) == [(c.ABANDONED, SUSPECTED, "")]
    assert report.verdict == c.VIOLATED


def test_12_raw_sql_changes_the_state_and_leaves_the_version() -> None:
    tale = Tale()
    a = tale.replica("A")
    a.write(W, to=1)
    a.read(1, X, c.AUDIT)
    a.write(C, 1, 2)

    report = tale.check()

    assert found(report) == [
        (c.TERMINAL_OVERWRITTEN, PROVEN, "v2"),
        (c.UNSEEN_WRITER, PROVEN, "v1"),
    ]
    assert sentences(report)[1].startswith("v1 holds CANCELED, as A saw, though WORKING (v1, A)")


def test_12_a_save_past_the_versions_is_seen_by_its_own_fact() -> None:
    tale = Tale()
    a = tale.replica("A")
    a.write(W, to=1)
    a.unversioned(X, origin=c.DIRECT, base_state=W)
    a.write(C, 1, 2, base_state=W)

    report = tale.check()

    assert found(report) == [(c.TERMINAL_OVERWRITTEN, PROVEN, "v2")]


def test_13_a_store_gives_one_version_twice() -> None:
    tale = Tale()
    a, b = tale.replica("A"), tale.replica("B")
    a.write(S, to=1)
    b.read(1, S)
    a.write(W, 1, 2)
    b.write(F, 1, 2)

    report = tale.check()

    assert found(report) == [(c.VERSION_FORK, PROVEN, "v2")]
    assert sentences(report) == ["v2 was given to two writes: WORKING by A and FAILED by B"]


def test_13_a_store_accepts_a_write_from_an_older_base() -> None:
    tale = Tale()
    a, b = tale.replica("A"), tale.replica("B")
    a.write(S, to=1)
    b.read(1, S)
    a.write(W, 1, 2)
    b.write(W, 1, 3)

    assert found(tale.check()) == [(c.VERSION_FORK, PROVEN, "v3")]


def test_14_a_store_without_versions_is_told_once() -> None:
    facts = []
    for task in ("one", "two", "three"):
        tale = Tale(store="InMemoryTaskStore#1", task=task)
        a = tale.replica(f"A-{task}")
        a.unversioned(S)
        a.unversioned(C, base_state=S)
        facts += tale.facts

    report = check(facts)

    assert [(f.rule, f.severity, f.task.task_id) for f in report.findings] == [
        (c.UNFENCED_STORE, c.INFO, "one")
    ]
    assert report.findings[0].explanation == (
        "InMemoryTaskStore#1 keeps no versions: nothing there fences one writer from another"
    )


def test_14_several_writers_without_versions_are_never_healthy() -> None:
    tale = Tale(store="tasks @ plain")
    a, b = tale.replica("A"), tale.replica("B")
    a.unversioned(W)
    b.unversioned(W)

    assert tale.check().verdict == c.UNKNOWN


def test_15_a_cancel_that_loses_twice_is_one_logical_write() -> None:
    tale = Tale()
    a, b = tale.replica("A"), tale.replica("B")
    a.write(S, to=1)
    b.read(1, S)
    a.write(W, 1, 2)
    b.refused(X, 1, origin=c.FROM_CANCEL_REMOTE, attempt=1)
    a.write(W, 2, 3)
    b.refused(X, 2, origin=c.FROM_CANCEL_REMOTE, attempt=2)
    b.cancel(3, 4, attempt=3)

    report = tale.check()

    assert found(report) == []
    assert report.verdict == c.FINE


# --- conflict without a rival


@pytest.mark.parametrize(
    ("state", "base", "reason"),
    [
        (X, 2, c.TERMINAL),
        (X, None, c.ABSENT),
        (S, None, c.FOREIGN_OWNER),
        (S, None, c.ORPHAN_VERSION_ROW),
    ],
)
def test_a_refusal_without_a_rival_is_no_finding(state: str, base: int | None, reason: str) -> None:
    tale = Tale()
    a = tale.replica("A")
    a.write(S, to=1)
    a.cancel(1, 2)
    a.refused(state, base, reason)

    report = tale.check()

    assert found(report) == []
    assert report.verdict == c.FINE


# --- must stay quiet


def test_quiet_1_writes_on_a_terminal_task_that_keep_its_state_are_told_once() -> None:
    tale = Tale()
    a = tale.replica("A")
    a.write(S, to=1)
    a.write(C, 1, 2)
    a.write(C, 2, 3, event_kind=c.MESSAGE_EVENT)
    a.write(C, 3, 4, event_kind=c.ARTIFACT_EVENT)

    report = tale.check()

    assert found(report) == [(c.TERMINAL_MUTATED, PROVEN, "v3")]
    assert report.findings[0].severity == c.INFO
    assert report.verdict == c.FINE


def test_quiet_2_refusals_are_the_fence_at_work() -> None:
    tale = Tale()
    a, b = tale.replica("A"), tale.replica("B")
    a.write(S, to=1)
    a.write(C, 1, 2)
    b.read(2, C)
    b.refused(X, 2, c.TERMINAL, origin=c.FROM_CANCEL_REMOTE)
    b.refused(W, 2, c.TERMINAL)
    b.refused(C, 2, c.TERMINAL)

    assert tale.check().verdict == c.FINE
    assert tale.check().findings == ()


def test_quiet_3_a_cancel_may_have_an_old_base() -> None:
    tale = Tale()
    a, b = tale.replica("A"), tale.replica("B")
    a.write(S, to=1)
    b.read(1, S)
    a.write(W, 1, 2)
    a.write(W, 2, 3)
    b.cancel(1, 4)

    report = tale.check()

    assert found(report) == []
    assert report.verdict == c.FINE


def test_a_cancel_from_an_old_base_that_replaces_a_terminal_state_is_found() -> None:
    tale = Tale()
    a, b = tale.replica("A"), tale.replica("B")
    a.write(S, to=1)
    b.read(1, S)
    a.write(C, 1, 2)
    b.cancel(1, 3)

    assert found(tale.check()) == [(c.TERMINAL_OVERWRITTEN, PROVEN, "v3")]


def test_quiet_4_delete_and_create_again() -> None:
    tale = Tale()
    a, b = tale.replica("A"), tale.replica("B")
    a.write(S, to=1)
    a.write(C, 1, 2)
    a.answer(C)
    a.delete()
    b.write(S, to=1)
    b.write(W, 1, 2)
    a.read(2, W)

    report = tale.check()

    assert found(report) == []
    assert report.verdicts == {
        tale.key: c.FINE,
        TaskKey(tale.key.store, "alice", "task-1", 1): c.FINE,
    }


def test_quiet_4_an_in_memory_store_after_a_restart() -> None:
    first, second = Tale(store="InMemoryTaskStore#p1"), Tale(store="InMemoryTaskStore#p2")
    first.replica("A").unversioned(C)
    second.replica("B").unversioned(W)

    report = check(first.facts + second.facts)

    assert {f.rule for f in report.findings} == {c.UNFENCED_STORE}


def test_quiet_5_one_task_id_under_two_owners_and_in_two_tables() -> None:
    facts = []
    for owner, store in (("alice", "tasks"), ("bob", "tasks"), ("alice", "archive")):
        tale = Tale(owner=owner, store=store)
        a = tale.replica(f"A-{owner}-{store}")
        a.write(S, to=1)
        a.write(C if owner == "alice" else X, 1, 2)
        facts += tale.facts

    report = check(facts)

    assert report.findings == ()
    assert len(report.verdicts) == 3


def test_quiet_7_a_row_from_before_the_migration_becomes_version_1() -> None:
    tale = Tale()
    a = tale.replica("A")
    a.read(None, W, c.EXECUTION_START)
    a.write(W, None, 1, base_state=W)
    a.write(C, 1, 2)

    assert found(tale.check()) == []


def test_quiet_8_twice_late_and_out_of_order() -> None:
    tale = Tale()
    a, b = tale.replica("A"), tale.replica("B")
    a.write(S, to=1)
    a.write(W, 1, 2)
    b.read(2, W)
    b.cancel(2, 3)

    assert check([*reversed(tale.facts), *tale.facts]) == tale.check()
    assert tale.check().findings == ()


@pytest.mark.parametrize("ahead_ms", [-180_000, 180_000])
def test_quiet_9_clocks_apart_by_minutes(ahead_ms: int) -> None:
    tale = Tale()
    a, b = tale.replica("A"), tale.replica("B", ahead_ms=ahead_ms)
    a.start("one")
    a.write(S, to=1)
    a.dispatch("d1", version=1, state=S)
    a.dispatched(c.ACCEPTED, "d1")
    a.write(c.INPUT_REQUIRED, 1, 2)
    a.end("one")
    b.start("two")
    b.read(2, c.INPUT_REQUIRED, c.EXECUTION_START)
    b.write(W, 2, 3)
    b.dispatch("d2", version=3, state=W)
    b.dispatched(c.ACCEPTED, "d2")
    b.write(C, 3, 4)
    b.end("two")
    a.answer(C)
    a.stream_end(c.END_TERMINAL, C)

    report = tale.check()

    assert found(report) == []
    assert report.verdict == c.FINE


def test_quiet_10_a_replica_restart() -> None:
    tale = Tale()
    a, again = tale.replica("A"), tale.replica("A2")
    a.heartbeat(replica_name="api-0")
    a.start("one")
    a.write(c.INPUT_REQUIRED, to=1)
    a.end("one")
    again.heartbeat(replica_name="api-0", started_unix_nano=tale.now)
    again.start("two")
    again.read(1, c.INPUT_REQUIRED, c.EXECUTION_START)
    again.write(C, 1, 2)
    again.end("two")

    report = tale.check()

    assert found(report) == []
    assert report.verdict == c.FINE


def test_quiet_11_markers_and_closed_queues_in_drops() -> None:
    tale = Tale()
    a = tale.replica("A")
    a.write(C, to=1)
    a.drop(c.DISCARDED_AT_CLOSE, kind="RequestCompleted", queue=c.SUBSCRIBER_QUEUE)

    assert tale.check().verdict == c.FINE


def test_quiet_12_a_stream_that_starts_at_version_5() -> None:
    tale = Tale()
    b = tale.replica("B")
    b.read(5, W, c.SUBSCRIBER_SNAPSHOT)
    b.read(5, W, c.SUBSCRIBER_SNAPSHOT)

    report = tale.check()

    assert found(report) == []
    assert report.doubts == {tale.key: ("predecessor unknown: nobody reported the write of v5",)}


def test_a_task_that_begins_at_version_5_has_an_unknown_past() -> None:
    tale = Tale()
    a = tale.replica("A")
    a.read(5, W)
    a.write(C, 5, 6)

    report = tale.check()

    assert found(report) == []
    assert report.verdicts == {tale.key: c.UNKNOWN}


def test_quiet_13_progress_interruption_and_resumption() -> None:
    tale = Tale()
    a = tale.replica("A")
    a.start("one")
    version = None
    for state in (S, W, W, W, c.INPUT_REQUIRED):
        a.write(state, version, (version or 0) + 1)
        version = (version or 0) + 1
    a.stream_end(c.END_INTERRUPTED, c.INPUT_REQUIRED)
    a.end("one")
    tale.wait(3 * 24 * 3600 * 1000)
    a.start("two")
    for state in (W, c.AUTH_REQUIRED, W, C):
        a.write(state, version, version + 1)
        version += 1
    a.end("two")

    report = tale.check()

    assert found(report) == []
    assert report.verdict == c.FINE


def test_quiet_13_a_task_parked_for_days() -> None:
    tale = Tale()
    a = tale.replica("A", heartbeats=True)
    a.start()
    a.write(c.INPUT_REQUIRED, to=1)
    a.end()
    tale.wait(3 * 24 * 3600 * 1000)
    a.heartbeat()

    assert tale.check().verdict == c.FINE


@pytest.mark.parametrize("state", [c.REJECTED, F])
def test_quiet_14_a_terminal_first_write(state: str) -> None:
    tale = Tale()
    a = tale.replica("A")
    a.start()
    a.write(state, to=1)
    a.end()
    a.answer(state)

    assert tale.check().verdict == c.FINE


def test_quiet_14_a_request_that_stores_no_task() -> None:
    tale = Tale()
    a = tale.replica("A")
    a.start()
    a.stream_end(c.END_MESSAGE)
    a.end()

    assert tale.check().verdict == c.FINE


def test_quiet_15_a_heartbeat_that_fails() -> None:
    tale = Tale()
    a, b = tale.replica("A"), tale.replica("B")
    a.heartbeat(executing=0)
    a.start()
    a.write(W, to=1)
    for _ in range(10):
        tale.wait(5000)
        b.heartbeat()
    a.write(C, 1, 2)
    a.end()

    assert tale.check().verdict == c.FINE


# --- must not blind the detector


def test_a_replica_without_instrumentation_leaves_the_predecessor_unknown() -> None:
    tale = Tale()
    a = tale.replica("A")
    a.write(S, to=1)
    a.read(2, X)  # written by somebody who does not report
    a.write(C, 2, 3)

    report = tale.check()

    assert (c.TERMINAL_OVERWRITTEN, PROVEN, "v3") in found(report)
    assert (c.UNSEEN_WRITER, SUSPECTED, "v2") in found(report)


def test_there_and_back_between_two_looks() -> None:
    tale = Tale()
    a, b = tale.replica("A"), tale.replica("B")
    a.write(C, to=1)
    b.read(1, C)
    b.write(W, 1, 2)
    b.write(C, 2, 3)

    report = tale.check()

    assert found(report) == [(c.TERMINAL_OVERWRITTEN, PROVEN, "v2")]


def test_a_commit_whose_caller_saw_an_error_is_found_by_the_next_read() -> None:
    tale = Tale()
    a, b = tale.replica("A"), tale.replica("B")
    a.write(W, to=1)
    b.read(1, W)
    b.cancel(1, 2)
    a.read(2, X)
    a.unknown(C, 2)
    b.read(3, C)

    report = tale.check()

    assert found(report) == [(c.TERMINAL_OVERWRITTEN, PROVEN, "v3")]
    assert sentences(report) == [
        "CANCELED (v2, B) was overwritten by COMPLETED (v3, A), whose writer did not learn that it was"
        " stored"
    ]


def test_rejected_is_terminal_too() -> None:
    tale = Tale()
    a = tale.replica("A")
    a.write(c.REJECTED, to=1)
    a.write(W, 1, 2)

    assert found(tale.check()) == [(c.TERMINAL_OVERWRITTEN, PROVEN, "v2")]


def test_facts_lost_in_an_overflowing_queue_make_the_history_unknown() -> None:
    tale = Tale()
    a = tale.replica("A")
    a.write(S, to=1)
    a.write(W, 1, 2)
    a.write(C, 2, 3)

    report = check([tale.facts[0], tale.facts[2]])

    assert report.verdict == c.UNKNOWN
    (gap,) = report.gaps
    assert (gap.replica, gap.first, gap.last) == ("A", 2, 2)
    assert gap.before_unix_nano is not None
    assert gap.after_unix_nano is not None
    assert gap.before_unix_nano - gap.after_unix_nano == 2 * MS
