"""The real receiver telling real endpoints: what is found reaches them, whatever happens to either."""

from __future__ import annotations

import base64
import random
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from standardwebhooks import Webhook

from a2a_fencing import conventions as c
from a2a_fencing_dashboard.alerts.settings import AlertSettings
from a2a_fencing_dashboard.store.notes import MUTED, Note
from support.json_sink import JsonSink, Received, json_sink
from support.otlp_requests import PROTOBUF, logs, record
from support.ports import own_port
from support.receiver import ReceiverProcess, receiver
from support.reports import Cluster
from support.tale import Tale

pytestmark = pytest.mark.integration

SECRET = "whsec_" + base64.b64encode(bytes(range(32))).decode()
HOSTILE = '"}]\n<script>alert(1)</script>‮../..'


def send(process: ReceiverProcess, facts: Any) -> None:
    body = logs(*map(record, facts)).SerializeToString()
    httpx.post(
        f"{process.url}/v1/logs", content=body, headers={"content-type": PROTOBUF}, timeout=30
    ).raise_for_status()


class Violations:
    """A cluster that violates on demand, each time on another task."""

    def __init__(self) -> None:
        self.cluster = Cluster(start=time.time_ns())
        self._sent = 0

    def add(self, process: ReceiverProcess, task_id: str) -> None:
        self.cluster.overwritten(task_id)
        self.cluster.heartbeats()
        self.flush(process)

    def flush(self, process: ReceiverProcess) -> None:
        facts = self.cluster.facts[self._sent :]
        self._sent += len(facts)
        send(process, facts)


def tasks(requests: list[Received], rule: str = c.TERMINAL_OVERWRITTEN) -> list[str]:
    """Tasks on which a rule was told to be violated, in that order."""
    return [
        alert["task"]["task_id"]
        for request in requests
        for alert in request.json["data"]["alerts"]
        if alert["rule"] == rule and alert["status"] == "firing"
    ]


def told(task_id: str) -> Callable[[JsonSink], bool]:
    return lambda sink: task_id in tasks(sink.taken)


def settings(sink: JsonSink, **more: Any) -> AlertSettings:
    return AlertSettings(webhooks=(f"{sink.url}/hook",), gather_s=0.05, look_s=0.05, **more)


def test_a_violation_arrives_signed_and_hostile_words_are_words(tmp_path: Path) -> None:
    with json_sink() as sink:
        alerts = settings(sink, secret=SECRET, dashboard_url="http://127.0.0.1:8501")
        with receiver(tmp_path / "facts.db", alerts=alerts) as process:
            Violations().add(process, HOSTILE)
            sink.wait(told(HOSTILE))

        for request in sink.requests:
            assert Webhook(SECRET).verify(request.body, request.headers)
        alert = sink.taken[0].json["data"]["alerts"][0]
        assert httpx.URL(alert["url"]).params["task"] == HOSTILE
        assert alert["witness"]


def test_trouble_passes_and_nothing_is_told_twice(tmp_path: Path) -> None:
    with json_sink() as sink:
        sink.statuses = [503, 500, 429]
        with receiver(tmp_path / "facts.db", alerts=settings(sink)) as process:
            violations = Violations()
            violations.add(process, "first")
            sink.wait(told("first"))
            violations.add(process, "second")
            sink.wait(told("second"))

        assert tasks(sink.taken) == ["first", "second"]
        refused = sink.requests[:3]
        assert [request.status for request in refused] == [503, 500, 429]
        names = {request.headers["webhook-id"] for request in sink.requests[:4]}
        assert len(names) == 1


def test_what_was_found_while_the_endpoint_was_away_arrives_when_it_is_back(tmp_path: Path) -> None:
    port = own_port()
    alerts = AlertSettings(webhooks=(f"http://127.0.0.1:{port}/",), gather_s=0.05, look_s=0.05)
    with receiver(tmp_path / "facts.db", alerts=alerts) as process:
        Violations().add(process, "early")
        _wait_for_metric(process, 'alert_messages_total{destination="webhook",outcome="retried"}')
        with json_sink(port) as sink:
            sink.wait(told("early"))


def test_a_killed_receiver_tells_what_it_has_not_and_nothing_again(tmp_path: Path) -> None:
    """At least once: what was on its way comes again under the same id; here nothing is."""
    with json_sink() as sink:
        with receiver(tmp_path / "facts.db", alerts=settings(sink)) as process:
            violations = Violations()
            violations.add(process, "told")
            sink.wait(told("told"))
            # Until it has noted that: a kill before would tell it again, under the same id.
            _wait_for_metric(process, "alerts_waiting", equals=0)
            sink.statuses = [503] * 1000
            violations.add(process, "untold")
            sink.wait(lambda s: s.requests[-1].status == 503)
            process.kill()
            tried = sink.requests[-1]
            sink.statuses = []
            process.start()
            sink.wait(told("untold"))
            violations.add(process, "later")
            sink.wait(told("later"))

        assert tasks(sink.taken) == ["told", "untold", "later"]
        again = next(request for request in sink.taken if "untold" in tasks([request]))
        assert again.headers["webhook-id"] == tried.headers["webhook-id"]
        assert again.body == tried.body


def test_killed_at_any_moment_it_loses_nothing_and_repeats_only_under_the_same_id(
    tmp_path: Path,
) -> None:
    names = [f"task-{number}" for number in range(60)]
    chance = random.Random(7)
    with json_sink() as sink, receiver(tmp_path / "facts.db", alerts=settings(sink)) as process:
        violations = Violations()
        for number, name in enumerate(names):
            violations.add(process, name)
            if number % 12 == 11:
                # Somewhere between the commit and the answer of the endpoint.
                time.sleep(chance.uniform(0, 0.15))
                process.kill()
                process.start()
        sink.wait(lambda s: set(names) <= set(tasks(s.taken)))

        once = {request.headers["webhook-id"]: request for request in sink.taken}
        assert sorted(tasks(list(once.values()))) == sorted(names)
        assert {request.body for request in once.values()} == {request.body for request in sink.taken}


def test_a_mute_from_the_dashboards_process_resolves(tmp_path: Path) -> None:
    with json_sink() as sink:
        with receiver(tmp_path / "facts.db", alerts=settings(sink)) as process:
            Violations().add(process, "known")
            sink.wait(told("known"))
            with process.stored() as store:
                note = Note(MUTED, "Ada", "known", rule=c.TERMINAL_OVERWRITTEN)
                store.add_note(note, now_unix_nano=time.time_ns())
            sink.wait(lambda s: _resolved(s.taken, "muted"))

        (alert,) = _resolved(sink.taken, "muted")
        assert (alert["rule"], alert["task"]["task_id"]) == (c.TERMINAL_OVERWRITTEN, "known")


def test_a_finding_that_later_facts_refute_is_resolved(tmp_path: Path) -> None:
    """A version that nobody wrote, until those who wrote it say so."""
    tale = Tale()
    a, b = tale.replica("A"), tale.replica("B")
    a.write(c.SUBMITTED, to=1)
    a.write(c.WORKING, 1, 2)
    b.read(4, c.WORKING)
    b.heartbeat()
    b.write(c.WORKING, 4, 5)
    a.heartbeat()
    before = len(tale.facts)
    a.write(c.WORKING, 2, 3)
    a.write(c.WORKING, 3, 4)
    with json_sink() as sink, receiver(tmp_path / "facts.db", alerts=settings(sink)) as process:
        send(process, tale.facts[:before])
        sink.wait(lambda s: s.taken)
        send(process, tale.facts[before:])
        sink.wait(lambda s: _resolved(s.taken, "retracted"))

        (found,) = sink.taken[0].json["data"]["alerts"]
        (gone,) = _resolved(sink.taken, "retracted")
        assert (found["rule"], gone["rule"]) == (c.UNSEEN_WRITER, c.UNSEEN_WRITER)
        assert found["id"] == gone["id"]


def test_an_endpoint_that_does_not_answer_holds_nobody_up(tmp_path: Path) -> None:
    """Everything is taken in while each attempt to tell hangs."""
    with socket.socket() as hole:
        hole.bind(("127.0.0.1", 0))
        hole.listen(1)
        url = f"http://127.0.0.1:{hole.getsockname()[1]}/"
        alerts = AlertSettings(
            webhooks=(url,), alertmanagers=(url,), gather_s=0.01, look_s=0.01, timeout_s=60.0
        )
        with receiver(tmp_path / "facts.db", alerts=alerts) as process:
            violations = Violations()
            for number in range(50):
                violations.add(process, f"task-{number}")
            with process.stored() as store:
                assert len(store.outbox.standing()) >= 1
            assert _metric(process, "alerts_waiting") >= 50
            assert _metric(process, "alert_messages_total{", default=0) == 0
            process.stop()
            assert process.child.exitcode == 0


def _resolved(requests: list[Received], reason: str) -> list[dict[str, Any]]:
    return [
        alert
        for request in requests
        for alert in request.json["data"]["alerts"]
        if (alert["status"], alert["reason"]) == ("resolved", reason)
    ]


def _metric(process: ReceiverProcess, name: str, *, default: float | None = None) -> float:
    text = httpx.get(f"{process.url}/metrics", timeout=30).text
    values = [
        float(line.rpartition(" ")[2])
        for line in text.splitlines()
        if line.startswith(f"a2a_fencing_{name}")
    ]
    return sum(values) if values else default or 0


def _wait_for_metric(process: ReceiverProcess, name: str, *, equals: float | None = None) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        value = _metric(process, name)
        if (value > 0) if equals is None else (value == equals):
            return
        time.sleep(0.02)
    raise AssertionError(f"{name} is {value}")
