"""``a2a-fencing export``: what is in a store, or a part of it, as a file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from a2a_fencing_dashboard.cli.extras import needs_extra
from a2a_fencing_dashboard.store import Store, StoreError, open_store
from a2a_fencing_dashboard.store.protocol import TaskFilter, TaskRow, Window

if TYPE_CHECKING:
    from a2a_fencing_dashboard.exports.excerpt import Excerpt

_FORMATS: Final = ("otlp", "html", "csv", "parquet")
_LOOKED_AT: Final = 1_000


@click.command(short_help="Write facts or a report from a store.")
@click.argument("path", metavar="STORE", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--format",
    "form",
    type=click.Choice(_FORMATS),
    default=_FORMATS[0],
    show_default=True,
    help="OTLP JSON lines for a2a-fencing itself, a report for people, tables for data tools.",
)
@click.option("--run", metavar="LABEL", help="Only this run.")
@click.option("--task", "task_id", metavar="ID", help="Only this task.")
@click.option(
    "--owner", metavar="NAME", help="Whose task it is, where several owners have one of this id."
)
@click.option(
    "--output",
    type=click.Path(dir_okay=False, allow_dash=True, path_type=Path),
    required=True,
    help="The file to write; - for standard output.",
)
def export(
    path: Path, form: str, run: str | None, task_id: str | None, owner: str | None, output: Path
) -> int:
    """Write what is in a store of the dashboard, or a part of it, to a file.

    OTLP JSON lines come back with the same findings: a2a-fencing check FILE judges them, and
    a2a-fencing dashboard --open FILE shows them.
    """
    if run is not None and task_id is not None:
        raise click.UsageError("--run and --task exclude each other")
    try:
        store = open_store(f"sqlite:///{path.resolve()}")
        try:
            _write(output, _content(store, form, run, task_id, owner))
        finally:
            store.close()
    except StoreError as error:
        raise click.UsageError(str(error)) from error
    return 0


def _content(
    store: Store, form: str, run: str | None, task_id: str | None, owner: str | None
) -> Iterable[bytes]:
    """The file in pieces; of the formats only OTLP does not need all of it at once."""
    with needs_extra("dashboard"):
        from a2a_fencing_dashboard.exports import excerpt, otlp
        from a2a_fencing_dashboard.exports.formats import FORMATS
    if run is not None and not store.run_rows((run,))[1]:
        raise click.UsageError(f"--run: there is no run {run!r} in this store")
    if task_id is None and form == "otlp":
        return otlp.lines(store.facts(run))
    chosen: Excerpt
    if task_id is not None:
        row = _task(store, task_id, owner)
        chosen = excerpt.of_task(store, row.key, row.facts)
    elif run is not None:
        chosen = excerpt.of_run(store, run, None)
    else:
        chosen = excerpt.of_store(store, None)
    return (FORMATS[form].write(chosen),)


def _task(store: Store, task_id: str, owner: str | None) -> TaskRow:
    rows, _ = store.tasks(Window(), TaskFilter(text=task_id), limit=_LOOKED_AT)
    found = [row for row in rows if row.key.task_id == task_id and owner in (None, row.key.owner)]
    if not found:
        # The summary and the pages call tasks by a part of their ids.
        near = dict.fromkeys(row.key.task_id for row in rows if task_id in row.key.task_id)
        meant = f"; did you mean {' or '.join(map(repr, list(near)[:3]))}?" if near else ""
        raise click.UsageError(f"--task: there is no task {task_id!r} in this store{meant}")
    if len({row.key.owner for row in found}) > 1:
        owners = ", ".join(repr(row.key.owner) for row in found)
        raise click.UsageError(f"--task: several owners have one of this id ({owners}); add --owner")
    return max(found, key=lambda row: row.last_unix_nano)


def _write(output: Path, pieces: Iterable[bytes]) -> None:
    # What is wrong with the choice is said before anything is written.
    some: Iterator[bytes] = iter(pieces)
    first = next(some, b"")
    try:
        with click.open_file(str(output), "wb") as file:
            file.writelines(chain((first,), some))
    except OSError as error:
        raise click.UsageError(f"--output: {output}: {error.strerror}") from error
