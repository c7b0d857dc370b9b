"""``a2a-fencing check``: judges a history offline."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click

from a2a_fencing import conventions as c
from a2a_fencing.checker import check as judge
from a2a_fencing.facts import Fact
from a2a_fencing_dashboard.cli.extras import needs_extra
from a2a_fencing_dashboard.cli.report import Recollection, tell
from a2a_fencing_dashboard.histories import HistoryError, read_history

_EXIT_CODES: Final = {c.FINE: 0, c.VIOLATED: 1, c.UNKNOWN: 3}


@click.command()
@click.argument(
    "paths", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
def check(paths: tuple[Path, ...]) -> int:
    """Judge the history in these files, all of them together.

    PATHS are OTLP JSON lines as the Collector's file exporter writes them, Jaeger's JSON download, or a
    store of the dashboard.

    Exit code: 0 when nothing is violated and no fact is missing, 1 when something is violated, 3 when
    nothing is violated but facts are missing, 2 when a file cannot be read.
    """
    memory = Recollection()
    try:
        with needs_extra("dashboard"):
            report = judge(memory.noting(_facts(paths)))
    except HistoryError as error:
        raise click.UsageError(str(error)) from error
    verdict = report.verdict if memory.facts else c.UNKNOWN
    for line in tell(report, verdict, memory):
        click.echo(line)
    return _EXIT_CODES[verdict]


def _facts(paths: tuple[Path, ...]) -> Iterator[Fact]:
    for path in paths:
        yield from read_history(path)
