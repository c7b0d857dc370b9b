"""Findings told step by step."""

from __future__ import annotations

from a2a_fencing import conventions as c
from a2a_fencing.checker import tell
from support.tale import Tale

W, C, X, S = c.WORKING, c.COMPLETED, c.CANCELED, c.SUBMITTED


def stale_burst() -> Tale:
    tale = Tale()
    a, b = tale.replica("A"), tale.replica("B", ahead_ms=-3000)
    a.heartbeat(replica_name="api-0")
    b.heartbeat(replica_name="api-1")
    a.start()
    a.write(S, to=1)
    a.write(W, 1, 2)
    b.read(2, W, c.EXECUTION_START)
    b.cancel(2, 3, trace_id="4bf92f35")
    b.answer(X, c.CANCEL_TASK)
    a.refused(W, 2, event_kind=c.ARTIFACT_EVENT)
    a.read(3, X)
    a.drop(c.STALE_EXECUTOR)
    a.write(C, 3, 4)
    a.end()
    a.stream_end(c.END_TERMINAL, X)
    return tale


def test_an_overwritten_cancel_is_told_by_version_order_whatever_the_clocks_say() -> None:
    tale = stale_burst()
    (finding,) = (f for f in tale.check().findings if f.rule == c.TERMINAL_OVERWRITTEN)

    assert tell(finding, tale.facts) == [
        "1. api-1 wrote CANCELED (status-update) on v2, and the store made it v3  [B:3, trace 4bf92f35]",
        "2. api-1 answered CancelTask: told CANCELED  [B:4]",
        "3. api-0 was refused WORKING (artifact-update) on v2: a rival had written since  [A:5]",
        "4. api-0 read CANCELED at v3 (reload)  [A:6]",
        "5. api-0 dropped an artifact-update (stale-executor)  [A:7]",
        "6. api-0 wrote COMPLETED (status-update) on v3, and the store made it v4  [A:8]",
        "7. api-0 ended a stream (terminal), having told CANCELED  [A:10]",
        "CANCELED (v3, api-1) was overwritten by COMPLETED (v4, api-0) (proven)",
        "Broken: a terminal state is final.",
    ]


def test_a_witness_that_is_not_at_hand_is_named() -> None:
    tale = stale_burst()
    (finding,) = (f for f in tale.check().findings if f.rule == c.TERMINAL_OVERWRITTEN)

    story = tell(finding, [fact for fact in tale.facts if fact.id != "B:3"])

    assert "- fact B:3 is not here" in story


def test_a_story_is_short_enough_to_be_read() -> None:
    tale = stale_burst()
    reader = tale.replica("C")
    for _ in range(100):
        reader.answer(X)
    (finding,) = (f for f in tale.check().findings if f.rule == c.TERMINAL_OVERWRITTEN)

    story = tell(finding, tale.facts)

    assert len(story) == 14
    assert any("wrote COMPLETED" in line for line in story)


def test_every_kind_of_fact_can_be_told() -> None:
    tale = Tale()
    a, b = tale.replica("A"), tale.replica("B")
    a.start("one")
    a.write(W, to=1)
    a.push(W)
    b.read(1, W)
    b.cancel(1, 2)
    b.answer(X, c.CANCEL_TASK)
    a.unknown(C, 1)
    a.read(2, X)
    a.dispatch(state=X, version=2)
    a.dispatched(c.ACCEPTED)
    a.write(C, 2, 3)
    a.stream_end(c.END_CUT)
    a.start("two")
    a.end("one")

    stories = [line for finding in tale.check().findings for line in tell(finding, tale.facts)]

    for words in (
        "A began an execution",
        "A notified a webhook of WORKING",
        "A tried to write COMPLETED (status-update) on v1 and did not learn whether it was stored",
        "A began to dispatch charge-card, believing the task CANCELED",
        "A saw charge-card end: accepted",
        "Broken: a finished task acts no more.",
        "Broken: a task is executed once at a time.",
    ):
        assert any(words in line for line in stories), words


def test_a_finding_for_information_breaks_nothing() -> None:
    tale = Tale(store="plain")
    tale.replica("A").unversioned(C)
    (finding,) = tale.check().findings

    assert tell(finding, tale.facts) == [
        "1. A wrote COMPLETED (status-update), and the store kept no version  [A:1]",
        "plain keeps no versions: nothing there fences one writer from another (proven)",
        "nothing is broken: this store promises no fence.",
    ]
