"""Alertmanager, over a transport that answers as the test wants."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import httpx
import pytest

from a2a_fencing import conventions as c
from a2a_fencing_dashboard.alerts.delivery import ALERTMANAGER, DELIVERED, REFUSED, RETRIED
from a2a_fencing_dashboard.store.notes import MUTED, Note
from a2a_fencing_dashboard.store.protocol import Store
from support.alerts import MANAGER, NOW, Send, World, appear, finding, retract
from support.reports import Cluster, Task

pytestmark = pytest.mark.asyncio

MANAGERS = (MANAGER,)


def seconds(time: str) -> float:
    return datetime.fromisoformat(time).timestamp()


async def test_what_stands_is_one_alert_a_kind(store: Store, task: Task, send: Send) -> None:
    appear(store, *(finding(task, key=str(n)) for n in range(500)), at=NOW - 60)
    async with send(alertmanagers=MANAGERS, dashboard_url="http://dash:8501") as world:
        await world.arrived(1)

    (request,) = world.requests
    assert str(request.url) == f"{MANAGER}/api/v2/alerts"
    ((alert,),) = world.bodies
    assert alert["labels"] == {
        "alertname": "A2AFencingViolation",
        "rule": c.TERMINAL_OVERWRITTEN,
        "severity": c.CRITICAL,
        "certainty": c.PROVEN,
        "run": "load-42",
    }
    assert alert["annotations"]["summary"] == "terminal-overwritten (proven): 500 findings stand"
    assert alert["annotations"]["explanation"] == "It was overwritten."
    assert alert["annotations"]["task"] == "task-1"
    assert httpx.URL(alert["annotations"]["task_url"]).params["task"] == "task-1"
    assert alert["generatorURL"].startswith("http://dash:8501/alerts?rule=terminal-overwritten")
    assert seconds(alert["startsAt"]) == NOW - 60
    assert seconds(alert["endsAt"]) == NOW + 240


async def test_it_is_told_again_while_it_stands(store: Store, task: Task, send: Send) -> None:
    appear(store, finding(task))
    async with send(alertmanagers=MANAGERS) as world:
        await world.arrived(1)
        world.now += 59
        appear(store, finding(task, key="5"), at=world.now)
        world.now += 2
        await world.arrived(2)

    (first,), (second,) = world.bodies
    assert first["labels"] == second["labels"]
    assert first["startsAt"] == second["startsAt"]
    assert seconds(second["endsAt"]) == NOW + 61 + 240
    assert "2 findings stand" in second["annotations"]["summary"]


async def test_a_new_kind_is_told_at_once(store: Store, task: Task, send: Send) -> None:
    appear(store, finding(task))
    async with send(alertmanagers=MANAGERS) as world:
        await world.arrived(1)
        appear(store, finding(task, c.DOUBLE_EFFECT))
        await world.arrived(2)

    assert [len(body) for body in world.bodies] == [1, 2]


async def test_what_is_retracted_or_muted_ends(store: Store, task: Task, send: Send) -> None:
    appear(store, finding(task), finding(task, c.DOUBLE_EFFECT))
    async with send(alertmanagers=MANAGERS) as world:
        await world.arrived(1)
        retract(store, finding(task))
        await world.arrived(2)
        world.now += 5
        store.add_note(Note(MUTED, "Ada", "known", rule=c.DOUBLE_EFFECT), now_unix_nano=NOW)
        await world.arrived(3)

    ends = [
        {alert["labels"]["rule"]: seconds(alert["endsAt"]) for alert in body} for body in world.bodies
    ]
    assert ends == [
        {c.TERMINAL_OVERWRITTEN: NOW + 240, c.DOUBLE_EFFECT: NOW + 240},
        {c.TERMINAL_OVERWRITTEN: NOW, c.DOUBLE_EFFECT: NOW + 240},
        {c.DOUBLE_EFFECT: NOW + 5},
    ]


async def test_what_is_long_past_ends(store: Store, task: Task, send: Send) -> None:
    appear(store, finding(task))
    async with send(alertmanagers=MANAGERS, stands_s=600.0) as world:
        await world.arrived(1)
        world.now += 601
        await world.arrived(2)

    (alert,) = world.bodies[-1]
    assert seconds(alert["endsAt"]) == NOW + 601


async def test_nothing_is_sent_while_nothing_stands(store: Store, task: Task, send: Send) -> None:
    appear(store, replace(finding(task, c.STREAM_CUT), severity=c.WARNING))
    async with send(alertmanagers=MANAGERS, severities=(c.CRITICAL,)) as world:
        world.now += 1000

    assert world.requests == []


async def test_each_attempt_tells_what_stands_by_then(store: Store, task: Task, send: Send) -> None:
    world = World()
    world.answers = [httpx.ConnectError("refused"), 503]
    appear(store, finding(task))

    async def sleep(seconds: float) -> None:
        world.waits.append(seconds)
        world.now += 30
        appear(store, finding(task, key=str(world.now)), at=world.now)

    world.sleep = sleep  # type: ignore[method-assign]
    async with send(world, alertmanagers=MANAGERS):
        await world.arrived(3)

    assert [seconds(body[0]["endsAt"]) for body in world.bodies] == [NOW + 240, NOW + 270, NOW + 300]
    assert "3 findings stand" in world.bodies[-1][0]["annotations"]["summary"]
    assert world.alerts.tallies == {(ALERTMANAGER, RETRIED): 2, (ALERTMANAGER, DELIVERED): 1}


async def test_a_refusal_is_counted_and_not_repeated_until_it_is_time(
    store: Store, task: Task, send: Send
) -> None:
    world = World()
    world.answers = [400]
    appear(store, finding(task))
    async with send(world, alertmanagers=MANAGERS):
        await world.arrived(1)
        world.now += 61
        await world.arrived(2)

    assert world.alerts.tallies == {(ALERTMANAGER, REFUSED): 1, (ALERTMANAGER, DELIVERED): 1}


async def test_a_finding_of_no_run_has_no_label_for_it(store: Store, send: Send) -> None:
    cluster = Cluster(run=None)
    cluster.overwritten()
    cluster.heartbeats()
    cluster.commit(store)
    world = World()
    world.now = cluster.now / 1e9
    async with send(world, alertmanagers=MANAGERS):
        await world.arrived(1)

    assert all("run" not in alert["labels"] for alert in world.bodies[0])


async def test_ids_are_never_labels(store: Store, send: Send) -> None:
    hostile = '"}<b>\n' + "x" * 500
    cluster = Cluster(run=hostile)
    cluster.overwritten(hostile)
    cluster.heartbeats()
    cluster.commit(store)
    world = World()
    world.now = cluster.now / 1e9
    async with send(world, alertmanagers=MANAGERS):
        await world.arrived(1)

    for alert in world.bodies[0]:
        assert alert["labels"].keys() == {"alertname", "rule", "severity", "certainty", "run"}
        assert alert["labels"]["run"] == hostile[:200]
        assert alert["annotations"]["task"] == hostile
