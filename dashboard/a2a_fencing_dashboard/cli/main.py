"""The commands together, and how each of them ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import click

from a2a_fencing_dashboard.cli.check import check
from a2a_fencing_dashboard.cli.collect import collect
from a2a_fencing_dashboard.cli.dashboard import dashboard
from a2a_fencing_dashboard.cli.demo import demo
from a2a_fencing_dashboard.cli.doctor import doctor
from a2a_fencing_dashboard.cli.export import export
from a2a_fencing_dashboard.cli.scenario import scenario

_PROGRAM: Final = "a2a-fencing"
_INTERRUPTED: Final = 130


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name=_PROGRAM, prog_name=_PROGRAM)
def commands() -> None:
    """See, judge and enforce that a finished A2A task stays finished."""


for _command in (demo, dashboard, collect, check, export, scenario, doctor):
    commands.add_command(_command)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command and returns its exit code; whatever goes wrong is one line on stderr."""
    try:
        code = commands.main(arguments, prog_name=_PROGRAM, standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return error.exit_code
    except click.ClickException as error:
        context = getattr(error, "ctx", None)
        command = context.command_path if context else _PROGRAM
        click.echo(f"{command}: {' '.join(error.format_message().split())}", err=True)
        return error.exit_code
    except click.Abort:
        return _INTERRUPTED
    return code or 0
