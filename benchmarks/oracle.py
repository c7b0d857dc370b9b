"""Proof that hooks and checker find every terminal overwrite and claim none, by database triggers.

Replica processes of a real A2A server work on one database under chaos: cancels and follow-ups on the
wrong replica, executors that do not listen, lost commit answers, replicas killed, tasks deleted and
created again, raw SQL. Triggers log every committed change of a task; what the receiver concluded is
then compared with that log. Exit code 1 when something was missed or claimed falsely.

    python benchmarks/oracle.py [--dsn DSN] [--seconds 60] [--seed 1] [--guard] [--audit]
    python benchmarks/oracle.py --driver-defaults   # SQLite whose cancels are not atomic: versions fork
    python benchmarks/oracle.py --cancels 10000 [--guard]   # the log alone, until so many are cancelled

DSN must name an empty database of its own; a new SQLite file by default. Raw SQL is counted apart: what
it did can only be told by a later read, at once with --audit. With --cancels nothing is received or
judged: the log tells which terminal states were overwritten, with the guard none.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

from sqlalchemy import make_url

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from support.oracle import cancels
from support.oracle.load import CANCELS
from support.oracle.run import OracleSettings, Outcome, run
from support.oracle.table import lines, problems

_SHOWN = 20


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument(
        "--dsn", help="async SQLAlchemy DSN of an empty database; a new SQLite file by default"
    )
    parser.add_argument(
        "--seconds", type=float, help="how long tasks are begun; 60, with --cancels at most 3600"
    )
    parser.add_argument(
        "--cancels", type=int, default=0, help="end when so many tasks are cancelled; only read the log"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--guard", action="store_true", help="the replicas enforce")
    parser.add_argument("--audit", action="store_true", help="the replicas re-read before each write")
    parser.add_argument("--driver-defaults", action="store_true", help="SQLite without BEGIN IMMEDIATE")
    parser.add_argument("--no-kills", action="store_true", help="no replica is ended")
    parser.add_argument("--clients", type=int, help="at once; 10, with --cancels 32")
    parser.add_argument("--replicas", type=int, default=3)
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="a2a-fencing-oracle-"))
    settings = OracleSettings(
        dsn=arguments.dsn or f"sqlite+aiosqlite:///{folder}/tasks.sqlite",
        folder=folder,
        seconds=arguments.seconds or (3600 if arguments.cancels else 60),
        cancels=arguments.cancels,
        seed=arguments.seed,
        guard=arguments.guard,
        audit=arguments.audit,
        driver_defaults=arguments.driver_defaults,
        clients=arguments.clients or (32 if arguments.cancels else 10),
        replicas=arguments.replicas,
    )
    if arguments.cancels:
        settings = replace(settings, mix=CANCELS, ended_every_s=20)
    if arguments.no_kills:
        settings = replace(settings, ended_every_s=0)
    print(_title(settings), flush=True)
    if arguments.cancels:
        return _tell_of_the_log(settings)
    return _tell(settings, run(settings))


def _title(settings: OracleSettings) -> str:
    modes = [
        name
        for name, on in (
            ("guard", settings.guard),
            ("audit", settings.audit),
            ("driver defaults", settings.driver_defaults),
        )
        if on
    ]
    return (
        f"a2a-sdk {version('a2a-sdk')}, {make_url(settings.dsn).get_backend_name()},"
        f" {settings.replicas} replicas, {settings.clients} clients, {_extent(settings)},"
        f" seed {settings.seed}{', ' if modes else ''}{', '.join(modes)}"
    )


def _extent(settings: OracleSettings) -> str:
    return f"{settings.cancels:,} cancels" if settings.cancels else f"{settings.seconds:g} s"


def _tell_of_the_log(settings: OracleSettings) -> int:
    began = time.monotonic()
    found, tally = cancels.run(settings)
    print(f"chaos      {_counts(tally.did)}")
    print(f"failed     {_counts(tally.failed)}")
    print(f"took       {time.monotonic() - began:.0f} s")
    for line in cancels.lines(found):
        print(line)
    return _complain(settings, list(cancels.problems(settings, found)))


def _tell(settings: OracleSettings, outcome: Outcome) -> int:
    print(f"chaos      {_counts(outcome.did)}")
    print(f"failed     {_counts(outcome.failed)}")
    for line in lines(outcome):
        print(line)
    return _complain(settings, list(problems(settings, outcome)))


def _complain(settings: OracleSettings, wrong: list[str]) -> int:
    for problem in wrong[:_SHOWN]:
        print(f"WRONG: {problem}")
    if len(wrong) > _SHOWN:
        print(f"... {len(wrong):,} in all")
    print(f"databases and logs: {settings.folder}")
    return 1 if wrong else 0


def _counts(counter: Counter[str]) -> str:
    return ", ".join(f"{what} {number:,}" for what, number in sorted(counter.items()))


if __name__ == "__main__":
    sys.exit(main())
