"""A run for the trigger log alone: many cancelled tasks, and which terminal states were overwritten.

Nothing is received and judged here, so that a run of ten thousand cancelled tasks takes minutes and the
memory of its log. What counts is what the database committed.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from a2a_fencing import conventions as c
from a2a_fencing_dashboard.demo.database import prepare
from a2a_fencing_dashboard.processes import Supervisor
from support.oracle import triggers
from support.oracle.load import Tally
from support.oracle.record import Record
from support.oracle.run import OracleSettings, disturb, fleet_of


@dataclass(slots=True)
class Overwrites:
    """Terminal states that the log shows to be replaced by another state.

    Attributes:
        tasks, writes: How many the log has.
        cancelled: Tasks of which a replica committed that they are cancelled.
        by_replicas: A replica's terminal state, replaced by a replica; from and to which state.
        over_raw: Raw SQL's terminal state, replaced by a replica.
        leftover: What a deletion had left over of another life, replaced by a replica.
        by_raw: Replaced by raw SQL.
    """

    tasks: int = 0
    writes: int = 0
    cancelled: int = 0
    by_replicas: Counter[str] = field(default_factory=Counter)
    over_raw: int = 0
    leftover: int = 0
    by_raw: int = 0


def count(record: Record) -> Overwrites:
    """Counts the overwrites of a log."""
    found = Overwrites(len(record.tasks), len(record.writes))
    found.cancelled = len(
        {write.task for write in record.writes if write.state == c.CANCELED and not write.raw}
    )
    for write in record.writes:
        if not write.overwrites:
            continue
        if write.raw:
            found.by_raw += 1
        elif not write.victim_is_replica:
            found.over_raw += 1
        elif write.leftover:
            found.leftover += 1
        else:
            found.by_replicas[f"{write.before} -> {write.state}"] += 1
    return found


def run(settings: OracleSettings) -> tuple[Overwrites, Tally]:
    """Runs the cluster under chaos; what the log shows of it, and what the clients did.

    Raises:
        ChildError: A replica could not be started.
        DatabaseError: The database cannot be used.
    """
    prepare(settings.dsn)
    asyncio.run(triggers.install(settings.dsn))
    tally = Tally()
    with Supervisor() as supervisor:
        fleet = fleet_of(settings, supervisor, None)
        with fleet.running():
            asyncio.run(disturb(settings, fleet, tally))
    tally.did += fleet.ended
    return count(Record(asyncio.run(triggers.read_log(settings.dsn)))), tally


def lines(found: Overwrites) -> Iterator[str]:
    """The table."""
    yield f"{'logged: tasks':56}{found.tasks:>9,}"
    yield f"{'logged: writes':56}{found.writes:>9,}"
    yield f"{'cancelled tasks':56}{found.cancelled:>9,}"
    yield f"{'terminal overwrites by instrumented writers':56}{found.by_replicas.total():>9,}"
    for change, number in found.by_replicas.most_common():
        yield f"  {change:54}{number:>9,}"
    yield f"{'apart: by raw SQL':56}{found.by_raw:>9,}"
    yield f"{'apart: of a state that raw SQL had written':56}{found.over_raw:>9,}"
    yield f"{'apart: of what a deletion had left over of another life':56}{found.leftover:>9,}"


def problems(settings: OracleSettings, found: Overwrites) -> Iterator[str]:
    """What must not be, a line each."""
    if found.cancelled < settings.cancels:
        yield f"only {found.cancelled:,} of {settings.cancels:,} tasks were cancelled in time"
    overwritten = found.by_replicas.total()
    if settings.guard and overwritten:
        yield f"overwritten in spite of the guard: {overwritten:,}"
    if not settings.guard and not overwritten:
        yield "nothing was overwritten without the guard: this load shows nothing"
