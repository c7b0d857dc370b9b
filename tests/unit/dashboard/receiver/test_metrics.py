"""What Prometheus is told."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from prometheus_client.parser import text_string_to_metric_families

from a2a_fencing import conventions as c
from a2a_fencing_dashboard.alerts.service import Alerts
from a2a_fencing_dashboard.alerts.settings import AlertSettings
from a2a_fencing_dashboard.ingest import Ingest
from a2a_fencing_dashboard.receiver.counts import Counts
from a2a_fencing_dashboard.receiver.metrics import ALIVE, GONE, SILENT, STOPPED, Metrics
from a2a_fencing_dashboard.store import StoreError
from a2a_fencing_dashboard.store.notes import MUTED, Note
from a2a_fencing_dashboard.store.protocol import Store, Window
from support.otlp_requests import PROTOBUF, logs, record
from support.reports import Cluster

pytestmark = pytest.mark.asyncio

HEADERS = {"content-type": PROTOBUF}
HOSTILE = '"}\n# evil <img src=x>'
Samples = Mapping[tuple[str, tuple[tuple[str, str], ...]], float]


def parse(text: str) -> Samples:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def value(samples: Samples, name: str, **labels: str) -> float:
    return samples[f"a2a_fencing_{name}", tuple(sorted(labels.items()))]


def overwritten(task_id: str = "task-1") -> Cluster:
    cluster = Cluster()
    cluster.overwritten(task_id)
    cluster.heartbeats()
    return cluster


async def test_what_was_received_and_found_is_told(run) -> None:
    cluster = overwritten()
    body = logs(*map(record, cluster.facts)).SerializeToString()
    async with run() as running:
        for _ in range(2):
            await running.http.post("/v1/logs", content=body, headers=HEADERS)
        await running.http.post("/v1/logs", content=b"\xff", headers=HEADERS)
        answer = await running.http.get("/metrics")

    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain")
    told = parse(answer.text)
    number = len(cluster.facts)
    assert value(told, "facts_received_total", result="stored") == number
    assert value(told, "facts_received_total", result="duplicate") == number
    assert value(told, "requests_total", status="200") == 2
    assert value(told, "requests_total", status="400") == 1
    assert value(told, "ingest_seconds_count") == 2
    kind = {"rule": c.TERMINAL_OVERWRITTEN, "severity": c.CRITICAL, "certainty": c.PROVEN}
    assert value(told, "violations", **kind) == 1
    assert value(told, "findings_total", **kind) == 1
    assert value(told, "verdict", verdict=c.VIOLATED) == 1
    assert value(told, "verdict", verdict=c.FINE) == 0
    assert value(told, "tasks", verdict=c.VIOLATED) == 1
    assert value(told, "facts_missing") == 0
    assert value(told, "conflicts_total", reason=c.STALE_BASE) == 1


async def test_what_has_not_happened_is_zero_not_absent(run) -> None:
    async with run() as running:
        told = parse((await running.http.get("/metrics")).text)

    kind = {"rule": c.VERSION_FORK, "severity": c.CRITICAL, "certainty": c.SUSPECTED}
    assert value(told, "findings_total", **kind) == 0
    assert value(told, "violations", **kind) == 0
    assert value(told, "verdict", verdict=c.UNKNOWN) == 1
    assert value(told, "alert_messages_total", destination="webhook", outcome="refused") == 0
    assert value(told, "replicas", state="silent") == 0
    assert value(told, "requests_total", status="503") == 0


async def test_ids_and_words_from_outside_never_become_labels(run) -> None:
    cluster = overwritten(HOSTILE)
    task = cluster.task(HOSTILE + "2", owner=HOSTILE)
    task.dropped(cluster.a, reason=HOSTILE)
    task.refused(cluster.a, c.WORKING, 1, reason=HOSTILE)
    body = logs(*map(record, cluster.facts)).SerializeToString()
    async with run() as running:
        await running.http.post("/v1/logs", content=body, headers=HEADERS)
        text = (await running.http.get("/metrics")).text

    assert "evil" not in text
    told = parse(text)
    assert value(told, "dropped_events_total", reason="other") == 1
    assert value(told, "conflicts_total", reason="other") == 1
    names = {name for _, labels in told for name, _ in labels}
    assert names <= {
        *("rule", "severity", "certainty", "verdict", "reason", "state", "status"),
        *("result", "outcome", "destination", "le"),
    }


async def test_what_is_muted_does_not_stand(run, store: Store) -> None:
    body = logs(*map(record, overwritten().facts)).SerializeToString()
    async with run() as running:
        await running.http.post("/v1/logs", content=body, headers=HEADERS)
        store.add_note(Note(MUTED, "Ada", "known", rule=c.TERMINAL_OVERWRITTEN), now_unix_nano=1)
        told = parse((await running.http.get("/metrics")).text)

    kind = {"rule": c.TERMINAL_OVERWRITTEN, "severity": c.CRITICAL, "certainty": c.PROVEN}
    assert value(told, "violations", **kind) == 0
    assert value(told, "findings_total", **kind) == 1


async def test_a_token_protects_it(run) -> None:
    async with run(token="s3cret") as running:
        refused = await running.http.get("/metrics")
        taken = await running.http.get("/metrics", headers={"authorization": "Bearer s3cret"})

    assert (refused.status_code, taken.status_code) == (401, 200)
    assert refused.headers["www-authenticate"] == "Bearer"
    assert "a2a_fencing" not in refused.text


async def test_a_store_that_cannot_be_read_is_said(run, store, monkeypatch) -> None:
    def fail(window: object) -> None:
        raise StoreError("the disk is gone")

    async with run() as running:
        monkeypatch.setattr(store, "overview", fail)
        answer = await running.http.get("/metrics")

    assert (answer.status_code, answer.text) == (503, "the disk is gone")


async def test_open_metrics_are_spoken_too(run) -> None:
    async with run() as running:
        answer = await running.http.get("/metrics", headers={"accept": "application/openmetrics-text"})

    assert answer.headers["content-type"].startswith("application/openmetrics-text")
    assert answer.text.endswith("# EOF\n")


@pytest.mark.parametrize(
    ("later_s", "interval_s", "state"),
    [(1, 10.0, ALIVE), (31, 10.0, SILENT), (31, 0.0, STOPPED), (3700, 10.0, GONE)],
)
async def test_replicas_are_alive_silent_stopped_or_gone(
    store: Store, later_s: float, interval_s: float, state: str
) -> None:
    cluster = Cluster()
    cluster.a.heartbeat(interval_s=interval_s)
    cluster.commit(store)
    (row,) = store.replicas(Window())
    now = row.last_seen_unix_nano / 1e9 + later_s
    alerts = Alerts(store.outbox, AlertSettings())
    metrics = Metrics(store, Ingest(store), Counts(), alerts, now=lambda: now)

    told = parse(metrics.answer("")[0].decode())

    states = {name: value(told, "replicas", state=name) for name in (ALIVE, SILENT, STOPPED, GONE)}
    assert states == {name: int(name == state) for name in states}
