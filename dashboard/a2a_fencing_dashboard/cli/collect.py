"""``a2a-fencing collect``: the receiver alone."""

from __future__ import annotations

import click

from a2a_fencing_dashboard.alerts.settings import AlertSettings
from a2a_fencing_dashboard.cli import alerting, options
from a2a_fencing_dashboard.cli.ending import supervised
from a2a_fencing_dashboard.cli.extras import require
from a2a_fencing_dashboard.services import start_receiver


@click.command(short_help="The receiver alone.")
@options.host
@options.otlp_port
@options.store
@options.token
@options.forward
@alerting.options
def collect(
    host: str,
    otlp_port: int,
    store_url: str,
    token: str | None,
    forward: str | None,
    alerts: AlertSettings,
) -> int:
    """Take facts in and judge them, without a dashboard, until Ctrl-C."""
    require("dashboard", "starlette")
    options.check_store(store_url)
    otlp_port = options.chosen_port(host, otlp_port, option="--otlp-port")
    with supervised() as supervisor:
        endpoint = start_receiver(
            supervisor,
            store_url=store_url,
            host=host,
            port=otlp_port,
            token=token,
            forward=forward,
            alerts=alerts,
        )
        options.say_receiver(endpoint, otlp_port)
        options.warn_of_strangers(host, token)
        alerting.say(alerts)
        click.echo(f"store      {store_url}")
        click.echo("Ctrl-C ends it")
        supervisor.wait()
    return 0
