"""What the checker costs per fact: ordinary tasks in batches, and one task of 100,000 facts.

    python benchmarks/checker.py [--tasks N] [--long N]

Prints CPU time, best of three, in microseconds a fact; beside it what ten million additions take on this
machine now, so that figures of two machines, or of a busy one, can be compared.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Iterator
from itertools import zip_longest

from a2a_fencing import conventions as c
from a2a_fencing.checker import Checker
from a2a_fencing.facts import Fact, TaskKey

REPLICAS = 3
WRITES = 8


class Recording:
    """Makes the facts of a cluster without a fault."""

    def __init__(self) -> None:
        self.numbers = [0] * REPLICAS
        self.now = 0

    def fact(self, replica: int, kind: str, task: TaskKey, **values: object) -> Fact:
        self.now += 1_000_000
        self.numbers[replica] += 1
        name = f"replica-{replica}"
        identity = {"id": f"{name}:{self.numbers[replica]}", "kind": kind, "replica": name}
        return Fact.build({**identity, "time_unix_nano": self.now, "task": task, **values})

    def write(self, replica: int, task: TaskKey, version: int, state: str, before: str | None) -> Fact:
        return self.fact(
            replica,
            c.WRITE,
            task,
            state=state,
            base_version=version - 1 or None,
            base_state=before,
            version=version,
            outcome=c.ACCEPTED,
            origin=c.FROM_EXECUTOR,
            event_kind=c.STATUS_EVENT,
            attempt=1,
            duration_ns=500_000,
            writer=f"replica-{replica}/1",
        )

    def task(self, number: int) -> Iterator[Fact]:
        """One execution of eight writes, and what its client was told."""
        replica = number % REPLICAS

        def key() -> TaskKey:  # decoded facts share no keys
            return TaskKey("tasks @ db", "alice", f"task-{number}")

        yield self.fact(replica, c.EXECUTION, key(), phase=c.STARTED, execution_id=f"e{number}")
        before = None
        for version in range(1, WRITES + 1):
            state = c.COMPLETED if version == WRITES else c.WORKING if version > 1 else c.SUBMITTED
            yield self.write(replica, key(), version, state, before)
            before = state
        yield self.fact(replica, c.EXECUTION, key(), phase=c.FINISHED, execution_id=f"e{number}")
        yield self.fact(replica, c.ANSWER, key(), state=c.COMPLETED, method=c.SEND_MESSAGE)

    def long_task(self, length: int) -> Iterator[Fact]:
        """One task that makes progress for ever."""
        key = TaskKey("tasks @ db", "alice", "long")
        yield self.fact(0, c.EXECUTION, key, phase=c.STARTED, execution_id="e")
        for version in range(1, length):
            yield self.write(0, key, version, c.WORKING, c.WORKING if version > 1 else None)


def interleaved(recording: Recording, tasks: int, width: int = 50) -> list[Fact]:
    """Facts of tasks that run side by side, renumbered in the order in which they happen."""
    groups = [[list(recording.task(n)) for n in range(at, at + width)] for at in range(0, tasks, width)]
    mixed = [f for group in groups for row in zip_longest(*group) for f in row if f is not None]
    numbers = dict.fromkeys({f.replica for f in mixed}, 0)
    facts = []
    for fact in mixed:
        numbers[fact.replica] += 1
        facts.append(Fact.build({**vars(fact), "id": f"{fact.replica}:{numbers[fact.replica]}"}))
    return facts


def cost(facts: list[Fact], batch: int) -> float:
    """CPU microseconds a fact, best of three."""
    best = float("inf")
    for _ in range(3):
        checker = Checker()
        gc.collect()
        begun = time.process_time()
        for at in range(0, len(facts), batch):
            checker.add(facts[at : at + batch])
        best = min(best, (time.process_time() - begun) / len(facts) * 1e6)
        if checker.report().findings:
            raise SystemExit("a history without a fault was found faulty")
    return best


def calibration() -> float:
    """Seconds of CPU for ten million additions."""
    begun, total = time.process_time(), 0
    for n in range(10_000_000):
        total += n
    return time.process_time() - begun


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--tasks", type=int, default=5000)
    parser.add_argument("--long", type=int, default=100_000)
    options = parser.parse_args()

    print(f"this machine: {calibration():.2f} s for ten million additions")
    facts = interleaved(Recording(), options.tasks)
    print(f"{options.tasks:,} tasks, {len(facts):,} facts of {REPLICAS} replicas, 50 tasks side by side")
    for batch in (1, 10, 100, 1000):
        print(f"  batches of {batch:>5,}: {cost(facts, batch):6.2f} us a fact")
    long = list(Recording().long_task(options.long))
    print(f"one task of {len(long):,} facts, in batches of 100")
    print(f"  in order:         {cost(long, 100):6.2f} us a fact")
    print(f"  its first tenth:  {cost(long[: len(long) // 10], 100):6.2f} us a fact")
    print(f"  backwards:        {cost(long[::-1], 100):6.2f} us a fact")


if __name__ == "__main__":
    main()
