"""Webhooks, over a transport that answers as the test wants."""

from __future__ import annotations

import asyncio
import json
import logging
from dataclasses import replace

import httpx
import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from a2a_fencing import conventions as c
from a2a_fencing.checker import Finding
from a2a_fencing.facts import TaskKey
from a2a_fencing_dashboard.alerts.delivery import ABANDONED, DELIVERED, REFUSED, RETRIED, WEBHOOK
from a2a_fencing_dashboard.alerts.message import telling
from a2a_fencing_dashboard.store import notes
from a2a_fencing_dashboard.store.notes import Note
from a2a_fencing_dashboard.store.outbox import CHANGED, MUTED, NEW, UNMUTED, Change
from a2a_fencing_dashboard.store.protocol import Store
from support.alerts import HOOK, NOW, Send, World, appear, finding, retract
from support.reports import Cluster, Task

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYqr"
HOOKS = (HOOK,)
FIRING = ("firing", "new")


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.message for record in caplog.records if record.levelno >= logging.WARNING]


async def test_a_finding_is_told_with_all_that_is_needed_to_see_to_it(
    store: Store, task: Task, send: Send
) -> None:
    async with send(webhooks=HOOKS, dashboard_url="http://dash:8501") as world:
        appear(store, finding(task))

    (request,) = world.requests
    assert (request.method, str(request.url)) == ("POST", HOOK)
    assert request.headers["content-type"] == "application/json"
    (body,) = world.bodies
    (alert,) = body["data"].pop("alerts")
    assert body == {
        "type": "a2a_fencing.alerts",
        "timestamp": "2027-01-15T08:00:00.000+00:00",
        "data": {"dropped": 0},
    }
    assert len(alert.pop("id")) == 32
    assert alert == {
        "status": "firing",
        "reason": "new",
        "rule": c.TERMINAL_OVERWRITTEN,
        "severity": c.CRITICAL,
        "certainty": c.PROVEN,
        "explanation": "It was overwritten.",
        "task": {
            "store": task.key.store,
            "owner": task.key.owner,
            "task_id": "task-1",
            "incarnation": 0,
        },
        "run": "load-42",
        "witness": ["a:1"],
        "found_at": "2027-01-15T08:00:00.000+00:00",
        "url": f"http://dash:8501/task?{httpx.QueryParams(_query(task))}",
    }


def _query(task: Task) -> dict[str, str]:
    key = task.key
    return {"task": key.task_id, "owner": key.owner, "store": key.store, "run": "load-42"}


async def test_the_signature_is_the_one_of_standard_webhooks(
    store: Store, task: Task, send: Send, monkeypatch: pytest.MonkeyPatch
) -> None:
    import time

    world = World()
    world.now = time.time()  # whoever verifies looks at a clock, too
    async with send(world, webhooks=HOOKS, secret=SECRET):
        appear(store, finding(task))

    (request,) = world.requests
    headers = dict(request.headers)
    assert Webhook(SECRET).verify(request.content, headers)["type"] == "a2a_fencing.alerts"
    with pytest.raises(WebhookVerificationError):
        Webhook(SECRET).verify(request.content.replace(b"critical", b"harmless"), headers)


async def test_without_a_secret_nothing_is_signed(store: Store, task: Task, send: Send) -> None:
    async with send(webhooks=HOOKS) as world:
        appear(store, finding(task))

    (request,) = world.requests
    assert "webhook-signature" not in request.headers
    assert request.headers["webhook-id"]


@pytest.mark.parametrize(
    "trouble", [408, 425, 429, 500, 502, 503, httpx.ConnectError("refused"), httpx.ReadTimeout("slow")]
)
async def test_passing_trouble_is_tried_again_under_the_same_name(
    store: Store, task: Task, send: Send, trouble: int | Exception, caplog: pytest.LogCaptureFixture
) -> None:
    world = World()
    world.answers = [trouble, trouble]
    async with send(world, webhooks=HOOKS):
        appear(store, finding(task))
        await world.arrived(3)

    assert len({request.headers["webhook-id"] for request in world.requests}) == 1
    assert len({request.content for request in world.requests}) == 1
    assert len(world.waits) == 2
    assert world.alerts.tallies == {(WEBHOOK, DELIVERED): 1, (WEBHOOK, RETRIED): 2}
    first, again = warnings(caplog)
    assert "webhook at hooks.example cannot be told of alerts" in first
    assert "takes alerts again" in again
    assert "secret" not in caplog.text


async def test_the_wait_grows_and_is_as_long_as_the_endpoint_asks(
    store: Store, task: Task, send: Send
) -> None:
    world = World()
    busy = httpx.Response(503, headers={"retry-after": "42"})
    for_ever = httpx.Response(503, headers={"retry-after": "86400"})
    world.answers = [busy, for_ever, *[httpx.ConnectError("refused")] * 40]
    async with send(world, webhooks=HOOKS):
        appear(store, finding(task))
        await world.arrived(43)

    asked, longest, *own = world.waits
    assert (asked, longest) == (42.0, 60.0)
    assert max(own) <= 60.0
    assert len(set(own)) == len(own)  # nobody's retries fall together
    assert max(own[:2]) <= 16.0 < max(own)


@pytest.mark.parametrize("status", [301, 302, 307, 400, 401, 403, 404, 410, 413])
async def test_a_refusal_is_final_and_said_once(
    store: Store, task: Task, send: Send, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    world = World()
    elsewhere = {"location": "http://127.0.0.1/elsewhere"}
    world.answers = [httpx.Response(status, headers=elsewhere) for _ in range(2)]
    async with send(world, webhooks=HOOKS):
        for key in ("1", "2"):
            appear(store, finding(task, key=key))
            await world.arrived(int(key))

    assert [str(request.url) for request in world.requests] == [HOOK] * 2
    assert world.alerts.tallies == {(WEBHOOK, REFUSED): 2}
    (line,) = warnings(caplog)
    assert f"will not be: answers {status}" in line


async def test_an_endpoint_that_never_takes_a_message_does_not_hold_up_the_next(
    store: Store, task: Task, send: Send
) -> None:
    world = World()
    world.answers = [500] * 5
    async with send(world, webhooks=HOOKS, attempts=5):
        appear(store, finding(task, key="1"))
        await world.arrived(5)
        appear(store, finding(task, key="2"))
        await world.arrived(6)

    assert world.alerts.tallies == {
        (WEBHOOK, RETRIED): 4,
        (WEBHOOK, ABANDONED): 1,
        (WEBHOOK, DELIVERED): 1,
    }
    assert len({request.headers["webhook-id"] for request in world.requests}) == 2


async def test_an_endpoint_that_is_away_is_waited_for(store: Store, task: Task, send: Send) -> None:
    world = World()
    world.answers = [httpx.ConnectError("refused")] * 50
    async with send(world, webhooks=HOOKS, attempts=5):
        appear(store, finding(task))
        await world.arrived(51)

    assert world.alerts.tallies[WEBHOOK, DELIVERED] == 1


async def test_a_retracted_finding_is_resolved_under_its_id(
    store: Store, task: Task, send: Send
) -> None:
    async with send(webhooks=HOOKS) as world:
        appear(store, finding(task), finding(task, c.ANSWER_CONTRADICTED))
        await world.arrived(1)
        retract(store, finding(task))
        await world.arrived(2)

    first, second = (body["data"]["alerts"] for body in world.bodies)
    (resolved,) = second
    assert (resolved["status"], resolved["reason"]) == ("resolved", "retracted")
    assert {alert["rule"]: alert["id"] for alert in first}[resolved["rule"]] == resolved["id"]


async def test_a_finding_that_came_and_went_is_not_told(store: Store, task: Task, send: Send) -> None:
    world = World()
    world.answers = [503]
    held = asyncio.Event()

    async def wait(seconds: float) -> None:
        await held.wait()

    world.sleep = wait  # type: ignore[method-assign]
    async with send(world, webhooks=HOOKS):
        appear(store, finding(task, key="1"))
        await world.arrived(1)
        appear(store, finding(task, key="2"), finding(task, key="3"))
        retract(store, finding(task, key="2"))
        held.set()

    first, again, second = world.bodies
    assert first == again
    assert [alert["status"] for alert in second["data"]["alerts"]] == ["firing"]


def test_what_nobody_has_heard_of_is_new_however_often_it_changed() -> None:
    one = Finding(c.STREAM_CUT, c.WARNING, c.PROVEN, TaskKey("s", "o", "t", 0), ("a:1",), "It was cut.")
    other = replace(one, key="other")
    history = [(one, NEW), (one, CHANGED), (other, UNMUTED), (other, MUTED), (other, UNMUTED)]
    changes = [Change(n, reason, which, None, 0) for n, (which, reason) in enumerate(history)]

    assert [change.reason for change in telling(changes, [c.WARNING])] == [NEW, UNMUTED]
    assert [change.reason for change in telling(changes[1:2], [c.WARNING])] == [CHANGED]


async def test_a_mute_resolves_and_silences(store: Store, task: Task, send: Send) -> None:
    async with send(webhooks=HOOKS) as world:
        appear(store, finding(task))
        await world.arrived(1)
        note = Note(notes.MUTED, "Ada", "known", rule=c.TERMINAL_OVERWRITTEN)
        store.add_note(note, now_unix_nano=NOW)
        await world.arrived(2)
        appear(store, finding(task, key="5"))
        appear(store, finding(task, c.DOUBLE_EFFECT))

    assert world.told == [FIRING, ("resolved", "muted"), FIRING]
    assert world.bodies[-1]["data"]["alerts"][0]["rule"] == c.DOUBLE_EFFECT


async def test_only_the_wanted_severities_are_told(store: Store, task: Task, send: Send) -> None:
    async with send(webhooks=HOOKS, severities=(c.CRITICAL,)) as world:
        appear(store, replace(finding(task, c.STREAM_CUT), severity=c.WARNING))
        appear(store, replace(finding(task, c.TERMINAL_MUTATED), severity=c.INFO))
        appear(store, finding(task))

    assert [alert["severity"] for body in world.bodies for alert in body["data"]["alerts"]] == [
        c.CRITICAL
    ]


async def test_a_burst_is_few_messages(store: Store, task: Task, send: Send) -> None:
    async with send(webhooks=HOOKS, parcel=100) as world:
        appear(store, *(finding(task, key=str(n)) for n in range(1000)))

    assert [len(body["data"]["alerts"]) for body in world.bodies] == [100] * 10
    assert len({request.headers["webhook-id"] for request in world.requests}) == 10


async def test_what_follows_the_first_one_closely_travels_with_it(
    store: Store, task: Task, send: Send
) -> None:
    async with send(webhooks=HOOKS, gather_s=3600.0) as world:
        appear(store, finding(task, key="1"))
        await asyncio.sleep(0)
        appear(store, finding(task, key="2"))

    # It is the end that cut the wait short.
    assert world.told == [FIRING, FIRING]
    assert len(world.requests) == 1


async def test_every_webhook_is_told_and_none_waits_for_another(
    store: Store, task: Task, send: Send
) -> None:
    world = World()
    dead = "http://dead.example/"

    async def handle(request: httpx.Request) -> httpx.Response:
        if request.url.host == "dead.example":
            raise httpx.ConnectError("refused")
        return await World.handle(world, request)

    world.handle = handle  # type: ignore[method-assign]
    async with send(world, webhooks=(dead, *HOOKS), drain_s=0.05):
        appear(store, finding(task))
        await world.arrived(1)
        assert world.alerts.waiting() == 1

    assert world.told == [FIRING]


async def test_what_was_not_delivered_is_told_by_the_next_receiver_and_the_rest_is_not(
    store: Store, task: Task, send: Send
) -> None:
    async with send(webhooks=HOOKS) as first:
        appear(store, finding(task, key="1"))
        await first.arrived(1)
    async with send(webhooks=HOOKS, drain_s=0.01) as second:
        second.answers = [httpx.ConnectError("refused")] * 10_000
        appear(store, finding(task, key="2"))
        await second.arrived(1)

    async with send(webhooks=HOOKS) as third:
        await third.arrived(1)

    assert third.told == [FIRING]
    names = [world.requests[0].headers["webhook-id"] for world in (first, second, third)]
    assert names[0] != names[1] == names[2]
    assert third.requests[0].content == second.requests[0].content


async def test_hostile_words_stay_words(store: Store, send: Send) -> None:
    hostile = '"}],\n<script>\x00‮ & ../..?x=#é' + "x" * 5000
    cluster = Cluster(run=hostile)
    bad = cluster.overwritten(hostile)
    cluster.heartbeats()
    async with send(webhooks=HOOKS, dashboard_url="http://dash:8501", secret=SECRET) as world:
        cluster.commit(store)

    told = [alert for body in world.bodies for alert in body["data"]["alerts"]]
    assert {alert["task"]["task_id"] for alert in told} == {hostile}
    assert {alert["run"] for alert in told} == {hostile}
    for alert in told:
        url = httpx.URL(alert["url"])
        assert (url.host, url.path, url.fragment) == ("dash", "/task", "")
        assert url.params["task"] == hostile
        assert url.params["owner"] == bad.key.owner
    assert all(json.loads(request.content.decode()) for request in world.requests)


async def test_no_more_than_a_hundred_witnesses_are_named(store: Store, task: Task, send: Send) -> None:
    many = tuple(f"a:{n}" for n in range(1, 5001))
    async with send(webhooks=HOOKS) as world:
        appear(store, replace(finding(task), witness=many))

    (alert,) = world.bodies[0]["data"]["alerts"]
    assert alert["witness"] == list(many[:100])


async def test_what_fails_here_is_said_and_alerting_goes_on(
    store: Store,
    task: Task,
    send: Send,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    heed, failures = store.outbox.heed_notes, iter([RuntimeError("a bug")])

    def fail_once() -> None:
        for error in failures:
            raise error
        heed()

    monkeypatch.setattr(store.outbox, "heed_notes", fail_once)
    async with send(webhooks=HOOKS, resend_s=0.01) as world:
        appear(store, finding(task))
        await world.arrived(1)

    assert world.told == [FIRING]
    assert "alerts wait" in caplog.text
