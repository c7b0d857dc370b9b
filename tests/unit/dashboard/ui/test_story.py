from __future__ import annotations

import pytest

from a2a_fencing import conventions as c
from a2a_fencing_dashboard.ui.story import sentence


@pytest.fixture
def names(cluster):
    return {cluster.a.id: "api-0", cluster.b.id: "api-1"}


def test_an_overwritten_task_is_told_as_it_happened(cluster, names):
    cluster.overwritten()
    assert [sentence(fact, names) for fact in cluster.facts] == [
        "api-0 wrote SUBMITTED, which became v1",
        "api-0 started to execute, token 1",
        "api-0 wrote WORKING on v1, which became v2",
        "api-1 wrote CANCELED on v2, which became v3 (cancel-remote)",
        "api-1 told a client CANCELED (CancelTask)",
        "api-0's artifact-update on v2 was refused: another writer was first (stale-base)",
        "api-0 read CANCELED at v3 (reload)",
        "api-0 dropped artifact-update: another writer finished the task (stale-executor)",
        "api-0 wrote COMPLETED on v3, which became v4",
        "api-0's stream ended with CANCELED: terminal (SendStreamingMessage)",
        "api-0's execution finished, token 1",
    ]


def test_other_facts(cluster, names):
    a, task = cluster.a, cluster.task("t")
    told = {
        "api-0's COMPLETED on v3 was refused: the task is finished (terminal)": task.refused(
            a, c.COMPLETED, 3, reason=c.TERMINAL
        ),
        "api-0 wrote FAILED on v2; whether it was stored is unknown (consumer-failure)": task.write(
            a, c.FAILED, 2, None, outcome=c.UNKNOWN, origin=c.FROM_CONSUMER_FAILURE
        ),
        "api-0 wrote WORKING": task.write(a, c.WORKING, None, None, versioned=False),
        "api-0 dispatched charge-card: accepted, token 1": task.dispatch(a, "charge-card", c.ACCEPTED),
        "api-0 dispatches charge-card, token 1": task.dispatch(a, "charge-card", None, phase=c.STARTED),
        "payments (api-1) answered the executor: accepted, it repeated its earlier answer (replayed)"
        ", token 1": task.dispatch(
            cluster.b, "payments", c.ACCEPTED, origin=c.FROM_RESOURCE, reason=c.REPLAYED
        ),
        "payments (api-1) answered the executor: rejected, token 1": task.dispatch(
            cluster.b, "payments", c.DISPATCH_REJECTED, origin=c.FROM_RESOURCE
        ),
        "api-0's execution was cancelled, token 1": task.execution(a, c.CANCELLED),
        "api-0's stream ended: evicted (SubscribeToTask)": task.answer(
            a, None, method=c.SUBSCRIBE_TO_TASK, ending=c.END_EVICTED
        ),
        "api-0 deleted the task": a.report(c.DELETED, task=task.key),
        "api-0 itself reported terminal-overwritten": a.report(
            c.VIOLATION, task=task.key, rule=c.TERMINAL_OVERWRITTEN
        ),
        "api-0 reported something-new": a.report("something-new", task=task.key),
    }
    for expected, fact in told.items():
        assert sentence(fact, names) == expected


def test_words_of_a_newer_replica_are_shown_as_they_are(cluster, names):
    fact = cluster.task("t").refused(cluster.a, "PAUSED", 1, reason="because")
    assert sentence(fact, names) == "api-0's PAUSED on v1 was refused: because"
