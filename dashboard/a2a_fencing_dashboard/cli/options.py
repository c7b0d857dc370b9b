"""Options that several commands share."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

import click
from click.core import ParameterSource

from a2a_fencing_dashboard.cli.extras import needs_extra
from a2a_fencing_dashboard.ports import PortTakenError, free_port, is_loopback

OTLP_PORT: Final = 4318
DASHBOARD_PORT: Final = 8501

_PORT: Final = click.IntRange(1, 65535)


def _http_url(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    if value is None:
        return None
    try:
        parts = urlsplit(value)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        valid = False
    if not valid:
        raise click.BadParameter(f"{value!r} is not an http(s) URL", context, parameter)
    return value.rstrip("/")


host = click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
otlp_port = click.option(
    "--otlp-port",
    type=_PORT,
    default=OTLP_PORT,
    show_default=True,
    help="Port of the OTLP receiver; where it is the default and taken, the next free one.",
)
port = click.option(
    "--port",
    type=_PORT,
    default=DASHBOARD_PORT,
    show_default=True,
    help="Port of the dashboard; where it is the default and taken, the next free one.",
)
store = click.option(
    "--store",
    "store_url",
    metavar="URL",
    default="sqlite:///a2a-fencing.sqlite",
    show_default=True,
    help="Where facts are kept.",
)
token = click.option(
    "--token",
    metavar="TEXT",
    envvar="A2A_FENCING_TOKEN",
    show_envvar=True,
    help="Ask for this token: replicas send the header 'authorization: Bearer TEXT', people open"
    " ?token=TEXT once.",
)
forward = click.option(
    "--forward",
    metavar="URL",
    callback=_http_url,
    help="Pass every accepted OTLP request on to this OTLP/HTTP endpoint, such as Jaeger's.",
)
jaeger_url = click.option(
    "--jaeger-url",
    metavar="URL",
    callback=_http_url,
    help="Base URL of a Jaeger page to link traces to.",
)


def chosen_port(host: str, number: int, *, option: str) -> int:
    """The port to use: the one that was asked for, or a free one from the default on.

    Raises:
        click.UsageError: It is taken, or the address is not one of this machine.
    """
    source = click.get_current_context().get_parameter_source(
        option.removeprefix("--").replace("-", "_")
    )
    asked_for = source is not ParameterSource.DEFAULT
    try:
        return free_port(host, number, exact=asked_for)
    except PortTakenError as error:
        raise click.UsageError(f"{option}: {error}") from error
    except OSError as error:
        raise click.UsageError(f"--host: cannot listen on {host}: {error.strerror}") from error


def warn_of_strangers(host: str, token: str | None) -> None:
    """Says it where other machines can reach what asks for no token."""
    if token is None and not is_loopback(host):
        click.echo(
            f"warning: whoever reaches {host} may read and write here; --token keeps them out", err=True
        )


def say_receiver(endpoint: str, port: int) -> None:
    """Prints where facts are taken in and, where that is not where servers send, how they get there."""
    click.echo(f"receiver   {endpoint}")
    source = click.get_current_context().get_parameter_source("otlp_port")
    if source is ParameterSource.DEFAULT and port != OTLP_PORT:
        hint = f"start servers with A2A_FENCING_ENDPOINT={endpoint}"
        click.echo(f"           {OTLP_PORT} is taken: {hint}")


def check_store(url: str) -> None:
    """Opens and closes the store, so that what is wrong with it is said before anything starts.

    Raises:
        click.UsageError: It cannot be opened.
    """
    with needs_extra("dashboard"):
        from a2a_fencing_dashboard.store import StoreError, open_store
    try:
        open_store(url).close()
    except StoreError as error:
        raise click.UsageError(f"--store: {error}") from error
