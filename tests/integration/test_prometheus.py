"""The real Prometheus and the real Alertmanager, where they are installed, with the example's files."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from a2a_fencing import conventions as c
from a2a_fencing_dashboard.alerts.settings import AlertSettings
from a2a_fencing_dashboard.store.notes import MUTED, Note
from support.json_sink import JsonSink, json_sink
from support.otlp_requests import PROTOBUF, logs, record
from support.ports import own_port
from support.receiver import ReceiverProcess, receiver
from support.reports import Cluster

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

EXAMPLE = Path(__file__).parents[2] / "examples" / "prometheus"
HOST = "127.0.0.1"
PROGRAMS = {"prometheus": ("prometheus",), "alertmanager": ("prometheus-alertmanager", "alertmanager")}
TOKEN = "s3cret"


def program(name: str) -> str:
    for candidate in PROGRAMS[name]:
        found = shutil.which(candidate)
        if found:
            return found
    pytest.skip(f"{name} is not installed (Debian: prometheus, prometheus-alertmanager)")


def a_port() -> int:
    return own_port()


@contextmanager
def running(log: Path, port: int, *command: str) -> Iterator[str]:
    """A server that is ready; gives its base URL."""
    url = f"http://{HOST}:{port}"
    with log.open("wb") as output, subprocess.Popen(command, stdout=output, stderr=output) as process:
        try:
            deadline = time.monotonic() + 60
            while not _is_ready(url):
                assert process.poll() is None, log.read_text()
                assert time.monotonic() < deadline, log.read_text()
                time.sleep(0.05)
            yield url
        finally:
            process.terminate()


def _is_ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/-/ready", timeout=5).status_code == 200
    except httpx.TransportError:
        return False


def adapted(name: str, to: Path, **changes: str) -> Path:
    """A file of the example with some values exchanged; all of them must be there."""
    text = (EXAMPLE / name).read_text()
    for old, new in changes.items():
        text, found = re.subn(rf"(?m)({old}:) .+$", rf"\1 {new}", text)
        assert found, old
    path = to / name
    path.write_text(text)
    return path


@contextmanager
def alertmanager(folder: Path, sink: JsonSink) -> Iterator[str]:
    path = adapted(
        "alertmanager.yml", folder, url=f"{sink.url}/", group_wait="100ms", group_interval="1s"
    )
    port = a_port()
    with running(
        folder / "alertmanager.log",
        port,
        program("alertmanager"),
        f"--config.file={path}",
        f"--web.listen-address={HOST}:{port}",
        "--cluster.listen-address=",
        f"--storage.path={folder / 'alertmanager'}",
    ) as url:
        yield url


@contextmanager
def prometheus(folder: Path, process: ReceiverProcess, manager: str) -> Iterator[str]:
    path = adapted("prometheus.yml", folder, scrape_interval="200ms", evaluation_interval="200ms")
    (folder / "token").write_text(TOKEN)
    text = path.read_text().replace("127.0.0.1:9093", manager.removeprefix("http://"))
    text = text.replace("127.0.0.1:4318", f"{HOST}:{process.port}")
    text = text.replace("# authorization:", "authorization:")
    text = re.sub(r"#   credentials_file: .+", f"  credentials_file: {folder / 'token'}", text)
    path.write_text(text)
    shutil.copy(EXAMPLE / "a2a-fencing.rules.yml", folder)
    port = a_port()
    with running(
        folder / "prometheus.log",
        port,
        program("prometheus"),
        f"--config.file={path}",
        f"--web.listen-address={HOST}:{port}",
        f"--storage.tsdb.path={folder / 'prometheus'}",
    ) as url:
        yield url


def violate(process: ReceiverProcess) -> None:
    cluster = Cluster(start=time.time_ns())
    cluster.overwritten("task-1")
    cluster.heartbeats()
    body = logs(*map(record, cluster.facts)).SerializeToString()
    headers = {"content-type": PROTOBUF, "authorization": f"Bearer {TOKEN}"}
    httpx.post(f"{process.url}/v1/logs", content=body, headers=headers, timeout=30).raise_for_status()


def mute_everything(process: ReceiverProcess) -> None:
    with process.stored() as store:
        for rule in c.RULES:
            store.add_note(Note(MUTED, "Ada", "a test", rule=rule), now_unix_nano=time.time_ns())


def notified(sink: JsonSink, status: str) -> list[dict[str, Any]]:
    """Alerts by our rule in what the Alertmanager told its receiver."""
    return [
        alert
        for request in sink.taken
        for alert in request.json["alerts"]
        if alert["status"] == status
        and alert["labels"]["alertname"] == "A2AFencingViolation"
        and alert["labels"]["rule"] == c.TERMINAL_OVERWRITTEN
    ]


def test_a_violation_goes_through_prometheus_and_alertmanager(tmp_path: Path) -> None:
    program("prometheus")
    with (
        json_sink() as sink,
        alertmanager(tmp_path, sink) as manager,
        receiver(tmp_path / "facts.db", token=TOKEN) as process,
        prometheus(tmp_path, process, manager) as url,
    ):
        _wait_for_scrape(url)
        violate(process)
        sink.wait(lambda s: notified(s, "firing"))

        labels = notified(sink, "firing")[0]["labels"]
        assert (labels["severity"], labels["certainty"]) == (c.CRITICAL, c.PROVEN)
        mute_everything(process)
        sink.wait(lambda s: notified(s, "resolved"))


def test_a_violation_goes_to_alertmanager_without_prometheus(tmp_path: Path) -> None:
    with json_sink() as sink, alertmanager(tmp_path, sink) as manager:
        alerts = AlertSettings(
            alertmanagers=(manager,),
            gather_s=0.05,
            look_s=0.05,
            resend_s=1.0,
            dashboard_url="http://127.0.0.1:8501",
        )
        with receiver(tmp_path / "facts.db", token=TOKEN, alerts=alerts) as process:
            violate(process)
            sink.wait(lambda s: notified(s, "firing"))

            alert = notified(sink, "firing")[0]
            assert alert["labels"]["run"] == "load-42"
            assert alert["annotations"]["task"] == "task-1"
            assert alert["annotations"]["explanation"]
            assert alert["generatorURL"].startswith("http://127.0.0.1:8501/alerts?")
            mute_everything(process)
            sink.wait(lambda s: notified(s, "resolved"))


def _wait_for_scrape(url: str) -> None:
    """Until Prometheus has seen the counter while it is 0."""
    deadline = time.monotonic() + 60
    query = {"query": "count(a2a_fencing_findings_total)"}
    while not httpx.get(f"{url}/api/v1/query", params=query).json()["data"]["result"]:
        assert time.monotonic() < deadline
        time.sleep(0.1)
