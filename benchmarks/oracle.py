"""Proof that hooks and checker find every terminal overwrite and claim none, by database triggers.

Replica processes of a real A2A server work on one database under chaos: cancels and follow-ups on the
wrong replica, executors that do not listen, lost commit answers, replicas killed, tasks deleted and
created again, raw SQL. Triggers log every committed change of a task; what the receiver concluded is
then compared with that log. Exit code 1 when something was missed or claimed falsely.

    python benchmarks/oracle.py [--dsn DSN] [--seconds 60] [--seed 1] [--guard] [--audit]
    python benchmarks/oracle.py --driver-defaults   # SQLite whose cancels are not atomic: versions fork

DSN must name an empty database of its own; a new SQLite file by default. Raw SQL is counted apart: what
it did can only be told by a later read, at once with --audit.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

from sqlalchemy import make_url

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from support.oracle.run import OracleSettings, Outcome, run
from support.oracle.table import lines, problems

_SHOWN = 20


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument(
        "--dsn", help="async SQLAlchemy DSN of an empty database; a new SQLite file by default"
    )
    parser.add_argument("--seconds", type=float, default=60, help="how long tasks are begun")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--guard", action="store_true", help="the replicas enforce")
    parser.add_argument("--audit", action="store_true", help="the replicas re-read before each write")
    parser.add_argument("--driver-defaults", action="store_true", help="SQLite without BEGIN IMMEDIATE")
    parser.add_argument("--no-kills", action="store_true", help="no replica is ended")
    parser.add_argument("--clients", type=int, default=10)
    parser.add_argument("--replicas", type=int, default=3)
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="a2a-fencing-oracle-"))
    settings = OracleSettings(
        dsn=arguments.dsn or f"sqlite+aiosqlite:///{folder}/tasks.sqlite",
        folder=folder,
        seconds=arguments.seconds,
        seed=arguments.seed,
        guard=arguments.guard,
        audit=arguments.audit,
        driver_defaults=arguments.driver_defaults,
        clients=arguments.clients,
        replicas=arguments.replicas,
    )
    if arguments.no_kills:
        settings = replace(settings, ended_every_s=0)
    print(_title(settings))
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
        f" {settings.replicas} replicas, {settings.clients} clients, {settings.seconds:g} s,"
        f" seed {settings.seed}{', ' if modes else ''}{', '.join(modes)}"
    )


def _tell(settings: OracleSettings, outcome: Outcome) -> int:
    print(
        "chaos      " + ", ".join(f"{what} {number:,}" for what, number in sorted(outcome.did.items()))
    )
    print("failed     " + ", ".join(f"{what} {n:,}" for what, n in sorted(outcome.failed.items())))
    for line in lines(outcome):
        print(line)
    wrong = list(problems(settings, outcome))
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
