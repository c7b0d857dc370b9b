"""How a command that runs until it is stopped ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import click

from a2a_fencing_dashboard.processes import ChildError, Supervisor


@contextmanager
def supervised() -> Iterator[Supervisor]:
    """Processes for one command: Ctrl-C is its ordinary end, a process that ends by itself an error.

    Raises:
        click.ClickException: A process ended.
    """
    try:
        with Supervisor() as supervisor:
            yield supervisor
    except KeyboardInterrupt:
        click.echo("stopped", err=True)
    except ChildError as error:
        raise click.ClickException(str(error)) from error
