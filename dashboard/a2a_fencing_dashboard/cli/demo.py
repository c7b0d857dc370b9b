"""``a2a-fencing demo``: a real cluster on this machine, under load."""

from __future__ import annotations

import tempfile
from datetime import datetime
from pathlib import Path
from typing import Final

import click

from a2a_fencing_dashboard.alerts.settings import AlertSettings
from a2a_fencing_dashboard.cli import alerting, options
from a2a_fencing_dashboard.cli.ending import supervised
from a2a_fencing_dashboard.cli.extras import needs_extra

_HEADLESS_SECONDS: Final = 30.0
_HOST: Final = "127.0.0.1"


@click.command(short_help="A cluster under load, with receiver and dashboard.")
@click.option(
    "--replicas", type=click.IntRange(1, 20), default=3, show_default=True, help="Server processes."
)
@click.option(
    "--concurrency",
    type=click.IntRange(1, 500),
    default=12,
    show_default=True,
    help="Clients, each with one task at a time.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(min=0, min_open=True),
    help=f"How long tasks are begun.  [default: until Ctrl-C; {_HEADLESS_SECONDS:g} with --headless]",
)
@click.option("--headless", is_flag=True, help="No dashboard: run, print the summary, exit.")
@click.option(
    "--dsn",
    metavar="URL",
    help="Database of the tasks, as SQLAlchemy's async engines take it.  [default: a new SQLite file]",
)
@click.option("--guard", is_flag=True, help="Let the replicas enforce what they otherwise only observe.")
@click.option("--seed", type=int, default=1, show_default=True, help="Of the clients' choices.")
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where databases and logs go.  [default: a new folder for temporary files]",
)
@options.port
@options.otlp_port
@options.jaeger_url
@alerting.options
def demo(
    replicas: int,
    concurrency: int,
    seconds: float | None,
    headless: bool,
    dsn: str | None,
    guard: bool,
    seed: int,
    folder: Path | None,
    port: int,
    otlp_port: int,
    jaeger_url: str | None,
    alerts: AlertSettings,
) -> int:
    """Run replicas of a real A2A server and clients that cancel tasks through another replica.

    Starts the replicas, each a process, on one database, a receiver for their facts and the dashboard.
    On a2a-sdk 1.3.0 some cancelled tasks are overwritten; at the end a table says how many, checked
    against the database itself. Ctrl-C ends the load and then everything that was started.
    """
    with needs_extra("demo"):
        from a2a_fencing_dashboard.demo.database import DatabaseError, prepare
        from a2a_fencing_dashboard.demo.settings import DemoSettings
        from a2a_fencing_dashboard.demo.show import run
        from a2a_fencing_dashboard.services import base_url, start_dashboard, start_receiver
    if headless and seconds is None:
        seconds = _HEADLESS_SECONDS
    folder = folder or Path(tempfile.mkdtemp(prefix="a2a-fencing-demo-"))
    folder.mkdir(parents=True, exist_ok=True)
    settings = DemoSettings(
        replicas=replicas,
        concurrency=concurrency,
        seconds=seconds,
        seed=seed,
        dsn=dsn or f"sqlite+aiosqlite:///{folder.resolve() / 'tasks.sqlite'}",
        folder=folder,
        run=f"demo {datetime.now():%Y-%m-%d %H:%M:%S}{' with the guard' * guard}",
        guard=guard,
    )
    try:
        prepare(settings.dsn)
    except DatabaseError as error:
        raise click.UsageError(f"--dsn: {error}") from error
    store_url = f"sqlite:///{folder.resolve() / 'facts.sqlite'}"
    otlp_port = options.chosen_port(_HOST, otlp_port, option="--otlp-port")
    port = options.chosen_port(_HOST, port, option="--port")
    with supervised() as supervisor:
        endpoint = start_receiver(
            supervisor,
            store_url=store_url,
            host=_HOST,
            port=otlp_port,
            alerts=alerts if headless else alerts.linking_to(base_url(_HOST, port)),
        )
        click.echo(f"receiver   {endpoint}")
        alerting.say(alerts)
        if not headless:
            url = start_dashboard(
                supervisor,
                store_url=store_url,
                host=_HOST,
                port=port,
                receiver_url=endpoint,
                jaeger_url=jaeger_url,
            )
            click.echo(f"dashboard  {url}")
        to_the_end = run(supervisor, settings, store_url=store_url, endpoint=endpoint, say=click.echo)
        if to_the_end and not headless:
            click.echo(f"the dashboard stays at {url} until Ctrl-C")
            supervisor.wait()
    return 0
