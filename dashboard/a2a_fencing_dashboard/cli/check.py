"""``a2a-fencing check``: judges a history offline."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import click

from a2a_fencing import allowlist
from a2a_fencing import conventions as c
from a2a_fencing.allowlist import Allowance, AllowListError
from a2a_fencing.checker import check as judge
from a2a_fencing.facts import Fact
from a2a_fencing.scoped import joined
from a2a_fencing_dashboard.cli.extras import needs_extra
from a2a_fencing_dashboard.histories import HistoryError, read_places
from a2a_fencing_dashboard.reports import FORMATS, Dossier, Place
from a2a_fencing_dashboard.reports.text import headline

_EXIT_CODES: Final = {c.FINE: 0, c.VIOLATED: 1, c.UNKNOWN: 3}

_history = click.Path(exists=True, dir_okay=False, path_type=Path)
_written = click.Path(dir_okay=False, path_type=Path)


@click.command(short_help="Judge a history in files.")
@click.argument("paths", nargs=-1, required=True, type=_history)
@click.option(
    "--format",
    "form",
    type=click.Choice(list(FORMATS)),
    default="text",
    show_default=True,
    help="How to tell it: to people, to programs, to a build server, to code scanning.",
)
@click.option("--output", type=_written, help="Where to write that; the verdict alone is printed then.")
@click.option("--html", type=_written, help="Also write a report with timelines, to open from disk.")
@click.option(
    "--allow",
    "rules",
    multiple=True,
    metavar="RULE",
    type=click.Choice(c.RULES),
    help="Show findings of this rule without counting them; may be repeated.",
)
def check(
    paths: tuple[Path, ...],
    form: str,
    output: Path | None,
    html: Path | None,
    rules: tuple[str, ...],
) -> int:
    """Judge the history in these files, all of them together.

    PATHS are OTLP JSON lines as the Collector's file exporter writes them, Jaeger's JSON download, or a
    store of the dashboard.

    What a project allows stands in its pyproject.toml, with the reason:

    \b
        [tool.a2a-fencing]
        allow = [{rule = "abandoned", reason = "replicas are killed on purpose"}]

    Exit code: 0 when nothing is violated and no fact is missing, 1 when something is violated, 3 when
    nothing is violated but facts are missing, 2 when a file cannot be read.
    """  # noqa: D301 - click's own mark for a paragraph that is not to be wrapped
    allowances = _allowances(rules)
    as_html = _html_renderer() if html is not None else None
    dossier = _judged(paths, allowances)
    told = FORMATS[form](dossier)
    if output is None:
        click.echo(told, nl=False)
    else:
        _write("--output", output, told)
        click.echo(headline(dossier))
    if html is not None and as_html is not None:
        _write("--html", html, as_html(dossier))
    return _EXIT_CODES[dossier.verdict]


def _allowances(rules: Sequence[str]) -> list[Allowance]:
    """What the command line allows, and what the project of the working directory does."""
    project = allowlist.nearest(Path.cwd())
    try:
        of_project = allowlist.read(project) if project is not None else ()
    except AllowListError as error:
        raise click.UsageError(str(error)) from error
    return [*(Allowance(rule, "--allow on the command line") for rule in rules), *of_project]


def _html_renderer() -> Callable[[Dossier], str]:
    with needs_extra("dashboard"):
        from a2a_fencing_dashboard.reports.html import as_html
    return as_html


def _judged(paths: Sequence[Path], allowances: Sequence[Allowance]) -> Dossier:
    facts: dict[str, Fact] = {}
    places: dict[str, Place] = {}
    try:
        for path in paths:
            for fact, line in read_places(path):
                if facts.setdefault(fact.id, fact) is fact:
                    places[fact.id] = Place(path, line)
    except HistoryError as error:
        raise click.UsageError(str(error)) from error
    facts = {fact.id: fact for fact in joined(facts.values())}
    report, allowed = allowlist.apply(judge(facts.values()), allowances)
    return Dossier(facts, report, allowed, places)


def _write(option: str, path: Path, text: str) -> None:
    try:
        path.write_text(text, "utf-8")
    except OSError as error:
        raise click.UsageError(f"{option}: {path}: {error.strerror}") from error
