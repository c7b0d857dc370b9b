"""``a2a-fencing dashboard``: receiver and dashboard."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click
from click.core import ParameterSource

from a2a_fencing_dashboard.alerts.settings import AlertSettings
from a2a_fencing_dashboard.cli import alerting, options
from a2a_fencing_dashboard.cli.ending import supervised
from a2a_fencing_dashboard.cli.extras import require
from a2a_fencing_dashboard.histories import HistoryError
from a2a_fencing_dashboard.histories.opening import open_history
from a2a_fencing_dashboard.services import base_url, start_dashboard, start_receiver

_OF_A_FILE: Final = frozenset({"history", "host", "port", "token", "jaeger_url"})
"""Options that go with --open."""


@click.command(short_help="Receiver and dashboard.")
@options.host
@options.port
@options.otlp_port
@options.store
@options.token
@options.forward
@options.jaeger_url
@click.option(
    "--open",
    "history",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Show the history in this file instead; nothing is taken in, and the file stays as it is.",
)
@alerting.options
def dashboard(
    host: str,
    port: int,
    otlp_port: int,
    store_url: str,
    token: str | None,
    forward: str | None,
    jaeger_url: str | None,
    history: Path | None,
    alerts: AlertSettings,
) -> int:
    """Take facts in and show them, until Ctrl-C.

    Servers that call a2a_fencing.instrument() send to the receiver's default port by themselves.
    """
    require("dashboard", "starlette", "streamlit")
    if history is not None:
        _refuse_what_takes_in()
        return _show(history, host, port, token, jaeger_url)
    options.check_store(store_url)
    otlp_port = options.chosen_port(host, otlp_port, option="--otlp-port")
    port = options.chosen_port(host, port, option="--port")
    with supervised() as supervisor:
        endpoint = start_receiver(
            supervisor,
            store_url=store_url,
            host=host,
            port=otlp_port,
            token=token,
            forward=forward,
            alerts=alerts.linking_to(base_url(host, port)),
        )
        options.say_receiver(endpoint, otlp_port)
        options.warn_of_strangers(host, token)
        alerting.say(alerts)
        url = start_dashboard(
            supervisor,
            store_url=store_url,
            host=host,
            port=port,
            receiver_url=endpoint,
            token=token,
            jaeger_url=jaeger_url,
        )
        click.echo(f"dashboard  {url}")
        click.echo(f"store      {store_url}")
        click.echo("Ctrl-C ends both")
        supervisor.wait()
    return 0


def _refuse_what_takes_in() -> None:
    """Of options that concern what arrives, none goes with a file.

    Raises:
        click.UsageError: One was given.
    """
    context = click.get_current_context()
    for option in context.command.params:
        given = context.get_parameter_source(option.name or "") is ParameterSource.COMMANDLINE
        if given and option.name not in _OF_A_FILE:
            raise click.UsageError(f"--open: nothing is taken in, so {option.opts[0]} has no effect")


def _show(path: Path, host: str, port: int, token: str | None, jaeger_url: str | None) -> int:
    """Shows a file, which is read and judged before anything starts."""
    port = options.chosen_port(host, port, option="--port")
    try:
        opened = open_history(path, path.name)
    except HistoryError as error:
        raise click.UsageError(f"--open: {error}") from error
    try:
        with supervised() as supervisor:
            url = start_dashboard(
                supervisor,
                store_url=opened.url,
                host=host,
                port=port,
                history=opened.title,
                token=token,
                jaeger_url=jaeger_url,
            )
            click.echo(f"dashboard  {url}")
            click.echo(f"history    {path}")
            click.echo("Ctrl-C ends it")
            supervisor.wait()
    finally:
        opened.close()
    return 0
