"""``a2a-fencing scenario``: fencing scenarios on the real SDK."""

from __future__ import annotations

import asyncio
import logging
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from a2a_fencing_dashboard.scenarios import Result, Scenario


@click.command(short_help="Play the fencing scenarios.")
@click.argument("name", required=False)
@click.option("--list", "only_list", is_flag=True, help="Name the scenarios and tell their stories.")
@click.option(
    "--dsn",
    metavar="URL",
    help="Database to play on, as SQLAlchemy's async engines take it; what a scenario writes there it"
    " deletes again.  [default: a new SQLite file]",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option(
    "--junit",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    help="Also write JUnit XML, one property per figure.",
)
def scenario(
    name: str | None, only_list: bool, dsn: str | None, as_json: bool, junit: Path | None
) -> int:
    """Play one fencing scenario, or all of them, on the installed SDK and compare its figures.

    Two replicas share a database; one runs a task which the other one finishes. The table shows what the
    store, the world outside and a client's stream made of it.

    Exit code: 0 when every figure is as expected, 1 when one differs.
    """
    chosen = _chosen(name)
    if only_list:
        width = max(len(one.name) for one in chosen)
        for one in chosen:
            click.echo(f"{one.name:<{width}}  {one.story}")
        return 0
    results = _played(chosen, dsn)
    _tell(results, as_json=as_json, junit=junit)
    return int(not all(result.ok for result in results))


def _chosen(name: str | None) -> Sequence[Scenario]:
    try:
        from a2a_fencing_dashboard.scenarios import SCENARIOS
    except ImportError as error:
        # The SDK's own stores say in their words what to install.
        text = str(error).partition("\n")[0]
        raise click.UsageError(f"{text} (pip install 'a2a-sdk[sql]>=1.2')") from error
    if name is None:
        return SCENARIOS
    chosen = [scenario for scenario in SCENARIOS if scenario.name == name]
    if not chosen:
        names = ", ".join(scenario.name for scenario in SCENARIOS)
        raise click.UsageError(f"there is no scenario {name!r}; there are {names}")
    return chosen


def _played(scenarios: Sequence[Scenario], dsn: str | None) -> list[Result]:
    from a2a_fencing_dashboard.demo.database import DatabaseError, prepare

    with _quiet(), tempfile.TemporaryDirectory(prefix="a2a-fencing-scenario-") as folder:
        dsn = dsn or f"sqlite+aiosqlite:///{folder}/tasks.sqlite"
        try:
            prepare(dsn)
        except DatabaseError as error:
            raise click.UsageError(f"--dsn: {error}") from error
        return [_result(one, dsn) for one in scenarios]


@contextmanager
def _quiet() -> Iterator[None]:
    """Keeps out of the terminal what the table shows anyway."""
    loggers = [logging.getLogger(name) for name in ("a2a", "a2a_fencing")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def _result(one: Scenario, dsn: str) -> Result:
    from a2a_fencing_dashboard.scenarios import Figures, Result

    try:
        return Result(one, asyncio.run(one.play(dsn)))
    except Exception as error:
        return Result(one, Figures(), f"{type(error).__name__}: {error}")


def _tell(results: Sequence[Result], *, as_json: bool, junit: Path | None) -> None:
    from a2a_fencing_dashboard.scenarios import report

    if as_json:
        click.echo(report.as_json(results))
    else:
        for line in report.table(results):
            click.echo(line)
    if junit is not None:
        try:
            report.write_junit(results, junit)
        except OSError as error:
            raise click.UsageError(f"--junit: {error.strerror}: {junit}") from error
