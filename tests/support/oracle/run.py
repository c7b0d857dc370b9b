"""One run of the oracle: a cluster under chaos, and what was found against what the database logged."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Coroutine, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from a2a_fencing import conventions as c
from a2a_fencing.checker import Finding, check
from a2a_fencing.facts import Fact
from a2a_fencing_dashboard.demo.database import open_engine, prepare
from a2a_fencing_dashboard.processes import Supervisor
from a2a_fencing_dashboard.services import start_receiver
from a2a_fencing_dashboard.store import open_store
from a2a_fencing_dashboard.store.protocol import Window
from support.oracle import triggers
from support.oracle.comparison import Comparison, compare
from support.oracle.fleet import Fleet
from support.oracle.labels import RAW_SQL, label_engine
from support.oracle.load import EVERYTHING, Mix, Tally, run_load
from support.oracle.raw import run_raw_sql
from support.oracle.record import Record
from support.oracle.replica import HEARTBEAT_S, ReplicaSettings
from support.ports import own_port

_HOST: Final = "127.0.0.1"


@dataclass(frozen=True, slots=True, kw_only=True)
class OracleSettings:
    """What a run is made of.

    Attributes:
        dsn: An empty database for the tasks.
        folder: Where facts and logs go.
        seconds: How long tasks are begun.
        cancels: End earlier, when clients were told of so many cancelled tasks; 0: do not.
        seed: Of every choice.
        guard: Whether the replicas enforce what is otherwise only observed.
        audit: Whether they re-read before each write.
        driver_defaults: Whether transactions on SQLite begin when the driver likes.
        replicas, clients: How many.
        ended_every_s: Seconds between two ends of a replica.
        raw_every_s: Seconds between two repairs by raw SQL.
        lost_answers: Share of commits whose answer is lost.
        mix: What clients do with their tasks.
    """

    dsn: str
    folder: Path
    seconds: float
    cancels: int = 0
    seed: int = 1
    guard: bool = False
    audit: bool = False
    driver_defaults: bool = False
    replicas: int = 3
    clients: int = 10
    ended_every_s: float = 6.0
    raw_every_s: float = 1.0
    lost_answers: float = 0.01
    mix: Mix = EVERYTHING


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a run.

    Attributes:
        comparison: Found against logged.
        did, failed: What was done to the cluster, and which requests failed.
        facts: How many were received.
        missing: How many are known to be missing.
        same: Whether all facts judged at once show what was concluded while they came.
    """

    comparison: Comparison
    did: Counter[str]
    failed: Counter[str]
    facts: int
    missing: int
    same: bool


def run(settings: OracleSettings) -> Outcome:
    """Runs the cluster under chaos and compares.

    Raises:
        ChildError: The receiver could not be started.
        DatabaseError: The database cannot be used.
    """
    prepare(settings.dsn)
    asyncio.run(triggers.install(settings.dsn))
    store_url = f"sqlite:///{settings.folder / 'facts.sqlite'}"
    tally = Tally()
    with Supervisor() as supervisor:
        endpoint = start_receiver(supervisor, store_url=store_url, host=_HOST, port=own_port())
        fleet = fleet_of(settings, supervisor, endpoint)
        with fleet.running():
            asyncio.run(disturb(settings, fleet, tally))
            if fleet.killed:
                # Long enough that who was killed last is missed, while the others still report.
                time.sleep(5 * HEARTBEAT_S)
    facts, findings = _received(store_url)
    report = check(facts)
    record = Record(asyncio.run(triggers.read_log(settings.dsn)))
    return Outcome(
        compare(record, facts, findings, report, fleet.killed),
        tally.did + fleet.ended,
        tally.failed,
        len(facts),
        sum(gap.count for gap in report.gaps),
        _overwritten(findings) == _overwritten(report.findings),
    )


async def disturb(settings: OracleSettings, fleet: Fleet, tally: Tally) -> None:
    """Runs load, raw SQL and the end of replicas until the time is over, or enough is cancelled."""
    stop = asyncio.Event()
    engine = open_engine(settings.dsn)
    label_engine(engine.sync_engine, RAW_SQL)
    load = asyncio.create_task(
        run_load(
            fleet.urls,
            tally,
            mix=settings.mix,
            clients=settings.clients,
            seed=settings.seed,
            stop=stop,
        )
    )
    meanwhile: list[Coroutine[Any, Any, None]] = []
    if settings.raw_every_s:
        meanwhile.append(
            run_raw_sql(engine, tally, seed=settings.seed, every_s=settings.raw_every_s, stop=stop)
        )
    if settings.ended_every_s:
        meanwhile.append(_end_replicas(settings, fleet, tally, stop))
    if settings.cancels:
        meanwhile.append(_until_cancelled(settings.cancels, tally, stop))
    chaos = [asyncio.create_task(one) for one in meanwhile]
    try:
        await _until_begun(load, tally)
        await asyncio.wait([load, *chaos], timeout=settings.seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        stop.set()
        await asyncio.gather(load, *chaos)
        await engine.dispose()


async def _until_begun(load: asyncio.Task[None], tally: Tally) -> None:
    """The replicas take a while to start; the time counts from the first task on."""
    while not tally.recent and not load.done():  # noqa: ASYNC110 - the clients have no event for it
        await asyncio.sleep(0.05)


async def _until_cancelled(enough: int, tally: Tally, stop: asyncio.Event) -> None:
    while len(tally.cancelled) < enough and not stop.is_set():  # noqa: ASYNC110 - as above
        await asyncio.sleep(0.1)


async def _end_replicas(
    settings: OracleSettings, fleet: Fleet, tally: Tally, stop: asyncio.Event
) -> None:
    choice = random.Random(f"{settings.seed}/ends")
    while not stop.is_set():
        await asyncio.sleep(settings.ended_every_s * choice.uniform(0.5, 1.5))
        if tally.recent and not stop.is_set():
            await fleet.disturb(choice)


def fleet_of(settings: OracleSettings, supervisor: Supervisor, endpoint: str | None) -> Fleet:
    """The replicas of a run, not started yet; without an endpoint they send their facts nowhere."""
    return Fleet(
        supervisor, lambda name, start: _replica(settings, name, start, endpoint), settings.replicas
    )


def _replica(settings: OracleSettings, name: str, start: int, endpoint: str | None) -> ReplicaSettings:
    return ReplicaSettings(
        name=name,
        dsn=settings.dsn,
        driver_defaults=settings.driver_defaults,
        endpoint=endpoint,
        guard=settings.guard,
        audit=settings.audit,
        lost_answers=settings.lost_answers,
        seed=f"{settings.seed}/{name}/{start}",
        log=settings.folder / f"{name}.log",
    )


def _received(store_url: str) -> tuple[list[Fact], list[Finding]]:
    """All facts that were acknowledged, and the findings that stand."""
    store = open_store(store_url)
    try:
        rows, _ = store.findings(Window(), limit=1_000_000)
        return list(store.facts()), [row.finding for row in rows]
    finally:
        store.close()


def _overwritten(findings: Iterable[Finding]) -> set[tuple[object, ...]]:
    return {(f.identity, f.certainty, f.witness) for f in findings if f.rule == c.TERMINAL_OVERWRITTEN}
