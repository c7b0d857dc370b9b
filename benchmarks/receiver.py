"""How many facts a second the receiver takes on one core, acknowledged after commit.

The real receiver, in a process bound to one core, writes to a SQLite file on disk. Three senders beside
it, one for each replica, send what replicas send: OTLP/HTTP in protobuf, 512 facts a request, each
waiting for its answer. Tasks are interleaved and have fourteen facts; one in ten is cancelled on another
replica. Every round begins with an empty store; medians over the rounds are printed, and beside the rate
the CPU time of the receiver a fact, which does not depend on what else the machine does.

    python benchmarks/receiver.py [--rounds 5] [--facts 100000] [--spans]
"""

from __future__ import annotations

import argparse
import http.client
import multiprocessing
import os
import random
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from a2a_fencing import conventions as c
from a2a_fencing.facts import Fact, TaskKey, to_attributes

HOST = "127.0.0.1"
REPLICAS = 3
ACTIVE = 100
"""Tasks that are under way at once."""
BATCH = 512
"""Facts in a request: what OpenTelemetry's batch processor sends at most."""
NOW = 1_760_000_000_000_000_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--facts", type=int, default=100_000, help="in a round")
    parser.add_argument("--spans", action="store_true", help="send facts as span events, too")
    arguments = parser.parse_args()

    facts = list(history(arguments.facts))
    bodies = requests(facts, arguments.spans)
    print(f"{len(facts)} facts in {sum(map(len, bodies))} requests, {arguments.rounds} rounds")
    print(f"{'':14}{'facts/s':>10}{'CPU us/fact':>14}{'facts/s by CPU':>16}")
    for checker in (True, False):
        rounds = [measure(bodies, len(facts), checker) for _ in range(arguments.rounds)]
        rate = statistics.median(rate for rate, _ in rounds)
        cpu = statistics.median(cpu for _, cpu in rounds)
        name = f"checker {'on' if checker else 'off'}"
        print(f"{name:14}{rate:10,.0f}{cpu:14.1f}{1e6 / cpu:16,.0f}", flush=True)


# --- what is sent -----------------------------------------------------------------------------------


def history(count: int) -> Iterator[Fact]:
    """Facts of tasks that are interleaved, as three replicas report them."""
    rng = random.Random(1)
    numbers = [0] * REPLICAS
    under_way: list[Iterator[tuple[int, dict[str, Any]]]] = []
    made = 0
    for index in range(count):
        while True:
            while len(under_way) < ACTIVE:
                under_way.append(task(made, rng))
                made += 1
            at = rng.randrange(ACTIVE)
            told = next(under_way[at], None)
            if told is not None:
                break
            del under_way[at]
        replica, values = told
        numbers[replica] += 1
        name = f"{replica:08x}-6a1b-4c5d-8e7f-0123456789ab"
        yield Fact(
            id=f"{name}:{numbers[replica]}",
            time_unix_nano=NOW + index * 33_000,
            replica=name,
            writer=f"{name}/1",
            trace_id=f"{rng.getrandbits(128):032x}",
            span_id=f"{rng.getrandbits(64):016x}",
            **values,
        )


def task(number: int, rng: random.Random) -> Iterator[tuple[int, dict[str, Any]]]:
    """The facts of one task: replica and fields of each."""
    replica = number % REPLICAS
    identity = f"{rng.getrandbits(128):032x}"
    common: dict[str, Any] = {
        "task": TaskKey("tasks @ postgresql://db/a2a", f"user-{number % 50}", identity),
        "context_id": f"{rng.getrandbits(128):032x}",
    }
    running = {"kind": c.EXECUTION, "execution_id": identity[:16], "token": 1, **common}
    yield replica, running | {"phase": c.STARTED}
    state = None
    states = [c.SUBMITTED, *[c.WORKING] * 6, c.COMPLETED]
    cancelled = number % 10 == 0
    for base, following in enumerate(states):
        if cancelled and base == 7:
            yield (replica + 1) % REPLICAS, write(base, state, c.CANCELED, c.FROM_CANCEL_REMOTE) | common
            yield replica, write(base, state, following, c.FROM_EXECUTOR, c.CONFLICT) | common
            yield (
                replica,
                {"kind": c.READ, "state": c.CANCELED, "version": 8, "origin": c.RELOAD} | common,
            )
            yield replica, {"kind": c.DROPPED, "reason": c.STALE_EXECUTOR, "state": following} | common
            break
        yield replica, write(base, state, following, c.FROM_EXECUTOR) | common
        state = following
    dispatch = {
        "kind": c.DISPATCH,
        "name": "charge-card",
        "dispatch_id": identity[:8],
        "attempt": 1,
        **common,
    }
    yield replica, dispatch | {"phase": c.STARTED, "execution_id": identity[:16]}
    yield replica, dispatch | {"phase": c.ENDED, "outcome": c.ACCEPTED, "execution_id": identity[:16]}
    yield (
        replica,
        {"kind": c.READ, "state": state, "version": 8, "origin": c.SUBSCRIBER_SNAPSHOT} | common,
    )
    yield replica, running | {"phase": c.FINISHED}
    told = c.CANCELED if cancelled else state
    yield replica, {"kind": c.ANSWER, "method": c.SEND_MESSAGE, "state": told} | common


def read(state: str | None, origin: str) -> dict[str, Any]:
    return {"kind": c.READ, "state": state, "version": 8, "origin": origin}


def write(
    base: int, base_state: str | None, state: str, origin: str, outcome: str = c.ACCEPTED
) -> dict[str, Any]:
    return {
        "kind": c.WRITE,
        "state": state,
        "base_version": base or None,
        "base_state": base_state,
        "version": base + 1 if outcome == c.ACCEPTED else None,
        "outcome": outcome,
        "reason": c.STALE_BASE if outcome == c.CONFLICT else None,
        "origin": origin,
        "event_kind": c.STATUS_EVENT,
        "attempt": 1,
        "duration_ns": 1_234_567 + base,
        "versioned": True,
    }


def requests(facts: Sequence[Fact], spans: bool) -> list[list[tuple[str, bytes]]]:
    """What each replica sends: path and body of each request."""
    sent = []
    for replica in sorted({fact.replica for fact in facts}):
        own = [fact for fact in facts if fact.replica == replica]
        bodies: list[tuple[str, bytes]] = []
        for start in range(0, len(own), BATCH):
            batch = own[start : start + BATCH]
            bodies.append(("/v1/logs", as_logs(batch)))
            if spans:
                bodies.append(("/v1/traces", as_spans(batch)))
        sent.append(bodies)
    return sent


def as_logs(facts: Sequence[Fact]) -> bytes:
    request = ExportLogsServiceRequest()
    records = request.resource_logs.add().scope_logs.add().log_records
    for fact in facts:
        record = records.add()
        record.event_name = c.event_name(fact.kind)
        fill(record, fact)
        record.trace_id = bytes.fromhex(fact.trace_id or "")
        record.span_id = bytes.fromhex(fact.span_id or "")
    return request.SerializeToString()


def as_spans(facts: Sequence[Fact]) -> bytes:
    request = ExportTraceServiceRequest()
    spans = request.resource_spans.add().scope_spans.add().spans
    for fact in facts:
        span = spans.add()
        span.name = "save"
        span.trace_id = bytes.fromhex(fact.trace_id or "")
        span.span_id = bytes.fromhex(fact.span_id or "")
        span.start_time_unix_nano = fact.time_unix_nano
        span.end_time_unix_nano = fact.time_unix_nano + 1_000_000
        event = span.events.add()
        event.name = c.event_name(fact.kind)
        fill(event, fact)
    return request.SerializeToString()


def fill(message: Any, fact: Fact) -> None:
    message.time_unix_nano = fact.time_unix_nano
    for key, value in to_attributes(fact).items():
        attribute = message.attributes.add()
        attribute.key = key
        if isinstance(value, bool):
            attribute.value.bool_value = value
        elif isinstance(value, int):
            attribute.value.int_value = value
        elif isinstance(value, float):
            attribute.value.double_value = value
        else:
            attribute.value.string_value = str(value)


# --- one round --------------------------------------------------------------------------------------


def measure(bodies: list[list[tuple[str, bytes]]], count: int, checker: bool) -> tuple[float, float]:
    """Facts a second, and CPU of the receiver in us a fact."""
    with tempfile.TemporaryDirectory() as directory:
        ours, theirs = multiprocessing.Pipe()
        child = multiprocessing.get_context("spawn").Process(
            target=receive, args=(f"sqlite:///{directory}/facts.db", theirs, checker), daemon=True
        )
        child.start()
        port, before = ours.recv(), ours.recv()
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, set(cores[1:]) or set(cores))
        started = time.perf_counter()
        senders = [threading.Thread(target=send, args=(port, sent)) for sent in bodies]
        for sender in senders:
            sender.start()
        for sender in senders:
            sender.join()
        elapsed = time.perf_counter() - started
        os.sched_setaffinity(0, set(cores))
        ours.send("done")
        after, stored = ours.recv()
        child.join()
    assert stored == count, f"{stored} of {count} facts were stored"
    return count / elapsed, (after - before) / count * 1e6


def send(port: int, bodies: list[tuple[str, bytes]]) -> None:
    connection = http.client.HTTPConnection(HOST, port)
    for path, body in bodies:
        while True:
            connection.request("POST", path, body, {"Content-Type": "application/x-protobuf"})
            response = connection.getresponse()
            response.read()
            if response.status == 200:
                break
            assert response.status == 503, response.status


def receive(store_url: str, pipe: Connection, checker: bool) -> None:
    """The process that is measured."""
    import uvicorn

    from a2a_fencing_dashboard.garbage import spare_the_collector
    from a2a_fencing_dashboard.ingest import Ingest
    from a2a_fencing_dashboard.ports import listener
    from a2a_fencing_dashboard.receiver.app import Receiver
    from a2a_fencing_dashboard.receiver.server import COLLECTED_AFTER, configuration
    from a2a_fencing_dashboard.store import open_store
    from a2a_fencing_dashboard.store.protocol import Window

    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    spare_the_collector(*COLLECTED_AFTER)
    store = open_store(store_url)
    receiver = Receiver(Ingest(store) if checker else unjudged(store))
    server = uvicorn.Server(configuration(receiver))
    with listener(HOST, 0, exact=True) as sock:
        pipe.send(sock.getsockname()[1])
        threading.Thread(target=stop_when_told, args=(server, pipe), daemon=True).start()
        server.run(sockets=[sock])
    pipe.send((time.process_time(), store.overview(Window()).facts))
    store.close()


def stop_when_told(server: Any, pipe: Connection) -> None:
    pipe.send(time.process_time())
    pipe.recv()
    server.should_exit = True


def unjudged(store: Any) -> Any:
    """An ingest that stores without judging."""
    from a2a_fencing_dashboard.ingest import Ingest, _Judged

    class Unjudged(Ingest):
        def __init__(self) -> None:
            super().__init__(store)
            self._judge.add = lambda facts, now: _Judged(facts, [], {}, {}, {})  # type: ignore[method-assign]

    return Unjudged()


if __name__ == "__main__":
    main()
