"""The store that `dashboard.py` shows: a load test of many runs, taken in by the real ingest.

Nothing is written past it: facts are judged and stored as the receiver does, in this process, in
batches of what a receiver that is behind commits at once, with the clock of the history.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import islice

from dashboard_history import NS, RATE, LoadTest

from a2a_fencing.facts import Fact
from a2a_fencing_dashboard.garbage import spare_the_collector
from a2a_fencing_dashboard.ingest import Ingest
from a2a_fencing_dashboard.receiver.server import COLLECTED_AFTER
from a2a_fencing_dashboard.store import open_store

RUNS = 10
BATCH = 4_000


def build(store_url: str, facts: int, tasks: int) -> int:
    """Builds a store of about so many facts and tasks that ends now; returns how many facts it has."""
    spare_the_collector(*COLLECTED_AFTER)
    store = open_store(store_url)
    clock = time.time_ns() - facts * NS // RATE
    ingest = Ingest(store, clock=lambda: clock)
    began, stored = time.monotonic(), 0
    try:
        history = _history(facts, tasks, clock)
        while batch := list(islice(history, BATCH)):
            clock = batch[-1].time_unix_nano
            stored += ingest.add(batch)
            if stored // BATCH % 50 == 0:
                took = time.monotonic() - began
                print(f"  {stored:,} facts, {1e6 * took / stored:.0f} us each", flush=True)
    finally:
        store.close()
    return stored


def _history(facts: int, tasks: int, start: int) -> Iterator[Fact]:
    for number in range(RUNS):
        guard = number % 2 == 1
        name = f"load-{number:02}{'-guard' * guard}"
        run = LoadTest(
            name, tasks // RUNS, facts // tasks, start, guard=guard, big=number == RUNS - 2, seed=number
        )
        at = start
        for fact in run.facts():
            at = fact.time_unix_nano
            yield fact
        start = at + NS
