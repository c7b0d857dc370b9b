"""Options that switch alerts on."""

from __future__ import annotations

import base64
import binascii
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import click

from a2a_fencing_dashboard.alerts.settings import SEVERITIES, AlertSettings, place

_PREFIX: Final = "whsec_"
_LEAST_BYTES: Final = 24


def _urls(
    context: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> tuple[str, ...]:
    for value in values:
        try:
            parts = urlsplit(value)
            valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            valid = False
        if not valid:
            # Not repeated: a webhook's URL is often its secret.
            raise click.BadParameter("is not an http(s) URL", context, parameter)
    return tuple(dict.fromkeys(values))


def _secret(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    if value is None:
        return None
    text = value.strip()
    try:
        key = base64.b64decode(text.removeprefix(_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not text.startswith(_PREFIX) or len(key) < _LEAST_BYTES:
        raise click.BadParameter(
            f"must be {_PREFIX} and {_LEAST_BYTES} bytes or more in base64", context, parameter
        )
    return text


def _secret_file(context: click.Context, parameter: click.Parameter, path: Path | None) -> str | None:
    if path is None:
        return None
    try:
        return _secret(context, parameter, path.read_text("ascii"))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "is no text"
        raise click.BadParameter(f"cannot read {path}: {reason}", context, parameter) from error


def _base_urls(
    context: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> tuple[str, ...]:
    return tuple(dict.fromkeys(value.rstrip("/") for value in _urls(context, parameter, values)))


def _base_url(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    return None if value is None else _base_urls(context, parameter, (value,))[0]


_OPTIONS: Final = (
    click.option(
        "--alert-webhook",
        "webhooks",
        metavar="URL",
        multiple=True,
        envvar="A2A_FENCING_ALERT_WEBHOOK",
        show_envvar=True,
        callback=_urls,
        help="Post what violates to this URL, and when it is retracted or muted; may be repeated.",
    ),
    click.option(
        "--alert-secret-file",
        "secret_file",
        type=click.Path(dir_okay=False, path_type=Path),
        callback=_secret_file,
        help="File with the key that webhook messages are signed with (Standard Webhooks).",
    ),
    click.option(
        "--alert-secret",
        "secret",
        envvar="A2A_FENCING_ALERT_SECRET",
        callback=_secret,
        hidden=True,  # for the environment: an argument can be seen by everybody on the machine
    ),
    click.option(
        "--alertmanager",
        "alertmanagers",
        metavar="URL",
        multiple=True,
        envvar="A2A_FENCING_ALERTMANAGER",
        show_envvar=True,
        callback=_base_urls,
        help="Tell this Alertmanager what violates; may be repeated.",
    ),
    click.option(
        "--alert-severity",
        "severity",
        type=click.Choice(SEVERITIES),
        default=SEVERITIES[-1],
        show_default=True,
        help="Tell of findings that are at least this severe.",
    ),
    click.option(
        "--alert-stands",
        "stands_min",
        metavar="MINUTES",
        type=click.FloatRange(min=1),
        default=60.0,
        show_default=True,
        help="How long an Alertmanager is told of a finding that nobody retracts or mutes.",
    ),
    click.option(
        "--dashboard-url",
        metavar="URL",
        callback=_base_url,
        help="Where people reach the dashboard, for links in alerts.  [default: the one started here]",
    ),
)


def options(command: Callable[..., int]) -> Callable[..., int]:
    """Gives a command these options; it receives them together, as `alerts`."""

    @functools.wraps(command)
    def with_settings(
        *,
        webhooks: tuple[str, ...],
        secret_file: str | None,
        secret: str | None,
        alertmanagers: tuple[str, ...],
        severity: str,
        stands_min: float,
        dashboard_url: str | None,
        **others: Any,
    ) -> int:
        settings = AlertSettings(
            webhooks=webhooks,
            alertmanagers=alertmanagers,
            secret=secret_file or secret,
            severities=SEVERITIES[: SEVERITIES.index(severity) + 1],
            dashboard_url=dashboard_url,
            stands_s=stands_min * 60,
        )
        return command(alerts=settings, **others)

    for option in reversed(_OPTIONS):
        with_settings = option(with_settings)
    return with_settings


def say(alerts: AlertSettings) -> None:
    """Prints where alerts go, where they do."""
    signed = "signed" if alerts.secret else "not signed"
    for url in alerts.webhooks:
        click.echo(f"alerts     webhook at {place(url)}, {signed}")
    for url in alerts.alertmanagers:
        click.echo(f"alerts     Alertmanager at {place(url)}")
