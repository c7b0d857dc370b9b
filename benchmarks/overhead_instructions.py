"""What the instrumentation costs the host in instructions: `overhead.py` where CPU time is too noisy.

The same tasks in the same modes, each in a process whose instructions valgrind counts, whatever else the
machine does; what one task takes is the difference between few tasks and many. Beside them, how often
they miss a cache as large as what a core has of its own (1 MiB): a hook runs seldom, so that its code is
not there, and such a miss takes as long as some hundred instructions. It does not see what the kernel
does.

    python benchmarks/overhead_instructions.py [--dsn DSN] [--few 40] [--many 240]
"""

from __future__ import annotations

import argparse
import itertools
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from overhead import BARE, FENCED, GUARDED, WRITES, receiver

TASKS_IN_A_REQUEST = 20
"""Tasks of 25 ms whose facts leave together; by time, they would leave too often where all is slow."""
NEVER_S = 1e6
CACHE_OF_A_CORE = "1048576,16,64"
"""Size, ways and line of the last cache that a core shares with nobody, bytes."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--dsn", help="async SQLAlchemy DSN; a SQLite file by default")
    parser.add_argument("--few", type=int, default=40, help="tasks")
    parser.add_argument("--many", type=int, default=240, help="tasks")
    parser.add_argument("--modes", default=f"{BARE};{FENCED};{GUARDED}")
    parser.add_argument(
        "--child", nargs=4, metavar=("MODE", "DSN", "TASKS", "ENDPOINT"), help=argparse.SUPPRESS
    )
    arguments = parser.parse_args()
    if shutil.which("valgrind") is None:
        parser.error("valgrind is not installed")
    if arguments.child:
        run(*arguments.child)
    else:
        compare(arguments)


def run(mode: str, dsn: str, tasks: str, endpoint: str) -> None:
    """The process that is measured."""
    import asyncio

    import overhead

    from a2a_fencing import outbox, pipeline
    from a2a_fencing.instrumentor import A2AFencingInstrumentor

    pipeline.Outbox = partial(outbox.Outbox, interval_s=NEVER_S)
    numbers = itertools.count(1)

    def send_some() -> None:
        if mode in (FENCED, GUARDED) and next(numbers) % TASKS_IN_A_REQUEST == 0:
            A2AFencingInstrumentor().flush()

    asyncio.run(overhead.run(mode, dsn, int(tasks), endpoint, send_some))


def compare(arguments: argparse.Namespace) -> None:
    modes = arguments.modes.split(";")
    sizes = arguments.few, arguments.many
    with (
        tempfile.TemporaryDirectory() as folder,
        receiver(folder) as endpoint,
        ThreadPoolExecutor(os.cpu_count()) as pool,
    ):
        counts = {
            (mode, tasks): pool.submit(count, mode, arguments.dsn, tasks, endpoint, Path(folder))
            for mode in modes
            for tasks in sizes
        }
        print(f"{sizes[1] - sizes[0]} tasks, {WRITES} writes a task, {arguments.dsn or 'SQLite'}")
        heads = (f"{name:>26} {'to bare':>9}" for name in ("million instructions/task", "misses/task"))
        print(f"{'':20} {' '.join(heads)}")
        base = None
        for mode in modes:
            few, many = (counts[mode, tasks].result() for tasks in sizes)
            each = [(more - less) / (sizes[1] - sizes[0]) for less, more in zip(few, many, strict=True)]
            base = base or each
            instructions, misses = (
                f"{(this / bare - 1) * 100:+8.1f}%" for this, bare in zip(each, base, strict=True)
            )
            print(
                f"{mode:20} {each[0] / 1e6:26.2f} {instructions} {each[1]:26,.0f} {misses}", flush=True
            )


def count(mode: str, dsn: str | None, tasks: int, endpoint: str, folder: Path) -> tuple[int, int]:
    """Instructions and cache misses of a process that runs so many tasks."""
    dsn = dsn or f"sqlite+aiosqlite:///{folder}/{mode}-{tasks}.db"
    done = subprocess.run(
        ["valgrind", "--tool=cachegrind", "--cache-sim=yes", f"--LL={CACHE_OF_A_CORE}",
         "--I1=32768,8,64", "--D1=32768,8,64", "--cachegrind-out-file=/dev/null",
         sys.executable, __file__, "--child", mode, dsn, str(tasks), endpoint],
        input="go\n", capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONHASHSEED": "0", "PYTHONWARNINGS": "ignore",
             "A2A_FENCING_HEARTBEAT_INTERVAL": "3600"},
    )  # fmt: skip
    instructions = re.search(r"I\s+refs:\s+([\d,]+)", done.stderr)
    misses = re.search(r"LL misses:\s+([\d,]+)", done.stderr)
    if done.returncode or instructions is None or misses is None:
        sys.exit(done.stderr)
    return int(instructions[1].replace(",", "")), int(misses[1].replace(",", ""))


if __name__ == "__main__":
    main()
