"""The real exporter to the real receiver, over loopback, read back from the store."""

from __future__ import annotations

import gzip
import itertools
import random
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from opentelemetry._logs import LogRecord
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from a2a_fencing import conventions as c
from a2a_fencing.facts import Fact, TaskKey, to_attributes
from a2a_fencing_dashboard.receiver.limits import Limits
from a2a_fencing_dashboard.store.protocol import TaskFilter, Window
from support.otlp_requests import PROTOBUF, logs, record, span, traces
from support.otlp_sink import otlp_sink
from support.receiver import ReceiverProcess, receiver
from support.tale import Tale

ALWAYS = Window()
HEADERS = {"content-type": PROTOBUF}
RESOURCE = Resource.create({"service.name": "shop"})


def overwritten() -> Tale:
    """A cancelled task that is completed after all."""
    tale = Tale()
    a, b = tale.replica("A", heartbeats=True), tale.replica("B", heartbeats=True)
    a.write(c.WORKING, None, 1, versioned=True, context_id="ctx")
    b.cancel(1, 2)
    a.write(c.COMPLETED, 2, 3)
    return tale


def export(url: str, facts: Sequence[Fact], *, as_logs: bool = True, as_spans: bool = True) -> None:
    """Sends facts as a server does: as log events, as span events, or both."""
    logger_provider = LoggerProvider(RESOURCE)
    logger_provider.add_log_record_processor(
        BatchLogRecordProcessor(OTLPLogExporter(f"{url}/v1/logs", compression=Compression.Gzip))
    )
    tracer_provider = TracerProvider(resource=RESOURCE)
    tracer_provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"{url}/v1/traces")))
    tracer, logger = tracer_provider.get_tracer("test"), logger_provider.get_logger("test")
    for fact in facts:
        with tracer.start_as_current_span("save") as recording:
            name, attributes = c.event_name(fact.kind), to_attributes(fact)
            if as_spans:
                recording.add_event(name, attributes, timestamp=fact.time_unix_nano)
            if as_logs:
                logger.emit(
                    LogRecord(timestamp=fact.time_unix_nano, event_name=name, attributes=attributes)
                )
    logger_provider.shutdown()
    tracer_provider.shutdown()


def without_place(facts: Sequence[Fact]) -> list[Fact]:
    """Facts without the span that recorded them, in an order of their own."""
    return sorted(
        (replace(fact, trace_id=None, span_id=None) for fact in facts), key=lambda fact: fact.id
    )


@pytest.mark.parametrize(
    ("as_logs", "as_spans"), [(True, False), (False, True), (True, True)], ids=["logs", "spans", "both"]
)
def test_the_real_exporter_is_understood(tmp_path: Path, as_logs: bool, as_spans: bool) -> None:
    tale = overwritten()
    with receiver(tmp_path / "facts.db") as process:
        export(process.url, tale.facts, as_logs=as_logs, as_spans=as_spans)

        with process.stored() as store:
            facts = list(store.facts())
            assert without_place(facts) == without_place(tale.facts)
            assert all(fact.trace_id and fact.span_id for fact in facts)
            view = store.overview(ALWAYS)
            assert (view.verdict, view.violations) == (c.VIOLATED, {c.TERMINAL_OVERWRITTEN: 1})
            spans = store.spans_of([fact.trace_id for fact in facts if fact.trace_id])
            assert [(s.name, s.service) for s in spans] == [("save", "shop")] * len(facts)


def test_facts_arrive_once_over_both_signals_and_restarts(tmp_path: Path) -> None:
    tale = overwritten()
    with receiver(tmp_path / "facts.db") as process:
        export(process.url, tale.facts, as_spans=False)
        process.stop()
        process.start()
        export(process.url, tale.facts)
        process.kill()
        process.start()
        export(process.url, tale.facts, as_logs=False)

        with process.stored() as store:
            assert without_place(list(store.facts())) == without_place(tale.facts)
            assert store.overview(ALWAYS).facts == len(tale.facts)
            assert store.findings(ALWAYS)[1] == 1
            assert store.gaps() == []


def test_metrics_of_the_real_exporter_are_accepted(tmp_path: Path) -> None:
    with receiver(tmp_path / "facts.db") as process:
        exporter = OTLPMetricExporter(f"{process.url}/v1/metrics")
        provider = MeterProvider([PeriodicExportingMetricReader(exporter)])
        provider.get_meter("test").create_counter("writes").add(1)

        assert provider.force_flush()

        provider.shutdown()
        with process.stored() as store:
            assert store.data_version() == 0


def test_a_token_that_the_real_exporter_sends_is_taken(tmp_path: Path) -> None:
    tale = overwritten()
    with receiver(tmp_path / "facts.db", token="s3cret") as process:
        assert httpx.post(f"{process.url}/v1/logs", headers=HEADERS).status_code == 401
        exporter = OTLPLogExporter(f"{process.url}/v1/logs", headers={"authorization": "Bearer s3cret"})
        provider = LoggerProvider()
        provider.add_log_record_processor(BatchLogRecordProcessor(exporter))
        fact = tale.facts[0]
        provider.get_logger("test").emit(
            LogRecord(event_name=c.event_name(fact.kind), attributes=to_attributes(fact))
        )
        provider.shutdown()

        with process.stored() as store:
            assert store.overview(ALWAYS).facts == 1


def test_refusals_reach_a_real_client_and_store_nothing(tmp_path: Path) -> None:
    limits = Limits(body_bytes=100_000)
    bomb = gzip.compress(bytes(50 << 20))
    assert len(bomb) < limits.body_bytes
    with receiver(tmp_path / "facts.db", limits=limits) as process, httpx.Client() as client:

        def status(content: bytes | Iterator[bytes], path: str = "/v1/logs", **headers: str) -> int:
            named = HEADERS | {name.replace("_", "-"): value for name, value in headers.items()}
            return client.post(process.url + path, content=content, headers=named).status_code

        assert status(b"\xff") == 400
        assert status(b"", path="/v1/profiles") == 404
        assert client.get(f"{process.url}/v1/logs").status_code == 405
        assert status(b"x" * 200_000) == 413
        assert status(iter([b"x" * 50_000] * 3)) == 413
        assert status(bomb, content_encoding="gzip") == 413
        assert status(b"", content_type="text/plain") == 415
        assert status(b"", content_encoding="br") == 415
        with process.stored() as store:
            assert store.data_version() == 0
        assert status(logs(record(overwritten().facts[0])).SerializeToString()) == 200
        with process.stored() as store:
            assert store.overview(ALWAYS).facts == 1


# --- killed at any moment


class Sender(threading.Thread):
    """Sends numbered facts, each batch on both signals, until told to stop; repeats what failed."""

    def __init__(self, url: str, replica: str) -> None:
        super().__init__(name=f"sender-{replica}")
        self.acknowledged: set[str] = set()
        self.sent = 0
        self._url = url
        self._replica = replica
        self._enough = threading.Event()

    def finish(self) -> None:
        self._enough.set()
        self.join()

    def run(self) -> None:
        numbers = itertools.count(1)
        with httpx.Client(timeout=30) as client:
            while not self._enough.is_set():
                facts = [self._fact(next(numbers)) for _ in range(7)]
                requests = {
                    "/v1/logs": logs(*map(record, facts)).SerializeToString(),
                    "/v1/traces": traces(span(facts)).SerializeToString(),
                }
                for path, body in requests.items():
                    while not self._accepted(client, path, body):
                        # Until the receiver is back there is nothing to do.
                        self._enough.wait(0.01)
                    self.acknowledged |= {fact.id for fact in facts}
                self.sent += len(facts)

    def _accepted(self, client: httpx.Client, path: str, body: bytes) -> bool:
        try:
            response = client.post(self._url + path, content=body, headers=HEADERS)
        except httpx.TransportError:
            return False
        assert response.status_code in (200, 503), response.text
        return response.status_code == 200

    def _fact(self, n: int) -> Fact:
        return Fact(
            id=f"{self._replica}:{n}",
            kind=c.WRITE,
            time_unix_nano=time.time_ns(),
            replica=self._replica,
            writer=f"{self._replica}/1",
            task=TaskKey("tasks", "alice", f"{self._replica}-{n // 10}"),
            state=c.WORKING,
            base_version=n % 10 or None,
            base_state=c.WORKING if n % 10 else None,
            version=n % 10 + 1,
            outcome=c.ACCEPTED,
        )


def wait_until_more_is_acknowledged(senders: Sequence[Sender], process: ReceiverProcess) -> None:
    goal = [sender.sent + 30 for sender in senders]
    while any(sender.sent < wanted for sender, wanted in zip(senders, goal, strict=True)):
        assert all(sender.is_alive() for sender in senders)
        process.supervisor.check()
        time.sleep(0.001)


def test_killed_at_any_moment_nothing_acknowledged_is_lost_and_nothing_counts_twice(
    tmp_path: Path,
) -> None:
    rng = random.Random(7)
    with receiver(tmp_path / "facts.db") as process:
        senders = [Sender(process.url, replica) for replica in ("A", "B", "C")]
        for sender in senders:
            sender.start()
        for _ in range(5):
            wait_until_more_is_acknowledged(senders, process)
            time.sleep(rng.random() / 20)
            process.kill()
            process.supervisor.stop(process.child)
            process.start()
        wait_until_more_is_acknowledged(senders, process)
        for sender in senders:
            sender.finish()
        process.kill()

        with process.stored() as store:
            ids = [fact.id for fact in store.facts()]
            acknowledged = set().union(*(sender.acknowledged for sender in senders))
            assert len(ids) == len(set(ids))
            assert acknowledged <= set(ids)
            assert store.gaps() == []
            view = store.overview(ALWAYS)
            assert view.facts == view.writes == len(ids)
            assert view.violations == {}
            rows, total = store.tasks(ALWAYS, TaskFilter(), limit=100_000)
            assert total == view.tasks == len({fact.task for fact in store.facts()})
            assert sum(row.facts for row in rows) == len(ids)


def test_asked_to_stop_it_stores_what_it_has_accepted(tmp_path: Path) -> None:
    with receiver(tmp_path / "facts.db") as process:
        sender = Sender(process.url, "A")
        sender.start()
        wait_until_more_is_acknowledged([sender], process)
        process.stop()
        process.start()
        wait_until_more_is_acknowledged([sender], process)
        sender.finish()

        with process.stored() as store:
            assert sender.acknowledged <= {fact.id for fact in store.facts()}
            assert store.gaps() == []


# --- forwarding


def test_accepted_requests_reach_a_second_receiver(tmp_path: Path) -> None:
    tale = overwritten()
    with (
        receiver(tmp_path / "second.db") as second,
        receiver(tmp_path / "first.db", forward=second.url) as first,
    ):
        export(first.url, tale.facts)
        refused = httpx.post(f"{first.url}/v1/logs", content=b"\xff", headers=HEADERS)
        first.stop()

        assert refused.status_code == 400
        with first.stored() as near, second.stored() as far:
            assert sorted(far.facts(), key=str) == sorted(near.facts(), key=str)
            trace_ids = [fact.trace_id for fact in near.facts() if fact.trace_id]
            assert far.spans_of(trace_ids) == near.spans_of(trace_ids)
            assert far.overview(ALWAYS).facts == len(tale.facts)


def test_an_endpoint_that_hangs_delays_no_answer(tmp_path: Path) -> None:
    released = threading.Event()

    def hang(path: str, before: int) -> tuple[int, dict[str, str]]:
        released.wait(60)
        return 200, {}

    with (
        otlp_sink(hang) as sink,
        receiver(tmp_path / "facts.db", forward=sink.url, limits=Limits(forward_requests=2)) as process,
    ):
        # More than are sent on at once and wait in the queue together.
        for n in range(1, 21):
            fact = replace(overwritten().facts[0], id=f"A:{n}")
            body = logs(record(fact)).SerializeToString()
            response = httpx.post(f"{process.url}/v1/logs", content=body, headers=HEADERS)
            assert response.status_code == 200
        with process.stored() as store:
            assert store.overview(ALWAYS).facts == 20
        released.set()
        process.stop()

    assert 1 <= len(sink.requests) < 20


def test_an_endpoint_that_is_dead_delays_no_answer(tmp_path: Path) -> None:
    limits = Limits(drain_s=0.1)
    with receiver(tmp_path / "facts.db", forward="http://127.0.0.1:1", limits=limits) as process:
        for n in range(1, 6):
            fact = replace(overwritten().facts[0], id=f"A:{n}")
            body = logs(record(fact)).SerializeToString()
            response = httpx.post(f"{process.url}/v1/logs", content=body, headers=HEADERS)
            assert response.status_code == 200

        with process.stored() as store:
            assert store.overview(ALWAYS).facts == 5
