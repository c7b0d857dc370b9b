"""``a2a-fencing doctor``: what an instrumented server would find here."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from importlib import metadata, util
from typing import Final

import click
import requests
from opentelemetry.util.re import parse_env_headers

from a2a_fencing import pipeline
from a2a_fencing.guard import wanted
from a2a_fencing.hooks import Hooks
from a2a_fencing.options import Options
from a2a_fencing.replica import Replica

_TIMEOUT_S: Final = 5.0
_EXTRAS: Final = {"dashboard": "streamlit", "demo": "aiosqlite"}
_PREFIXES: Final = ("A2A_FENCING_", "OTEL_")
_SECRETS: Final = ("HEADERS", "TOKEN", "SECRET")


@click.command(short_help="Tell what the instrumentation finds here.")
def doctor() -> int:
    """Tell what the instrumentation finds: SDK, hooks, settings, and whether facts would arrive.

    Nothing is recorded or stored by asking. Settings are those of the environment; what an application
    sets up in its own code, only the application knows.
    """
    try:
        options = Options.resolve({})
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    for topic, line in _findings(options):
        click.echo(f"{topic:<10} {line}")
    return 0


def _findings(options: Options) -> Iterator[tuple[str, str]]:
    yield (
        "version",
        f"a2a-fencing {metadata.version('a2a-fencing')} on Python {platform.python_version()}",
    )
    replica = Replica()
    yield "a2a-sdk", replica.sdk_version
    yield "hooks", _hooks(replica)
    yield "guard", str(wanted(options.guard))
    for name, value in sorted(os.environ.items()):
        if name.startswith(_PREFIXES):
            yield "setting", f"{name}={'***' if name.endswith(_SECRETS) else value}"
    for extra, library in _EXTRAS.items():
        installed = util.find_spec(library) is not None
        advice = f"not installed: pip install 'a2a-fencing[{extra}]'"
        yield "extra", f"{extra}: {'installed' if installed else advice}"
    if os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        yield "route", "none: OTEL_SDK_DISABLED is true"
        return
    for route in _routes(replica, options):
        yield "route", f"{route}: {_state(route.partition(': ')[2])}"


def _hooks(replica: Replica) -> str:
    hooks = Hooks(replica.id)
    hooks.install()
    hooks.remove()
    if hooks.missing:
        return f"this SDK has no {', '.join(hooks.missing)}; the other hooks work"
    return "all found what they observe"


def _routes(replica: Replica, options: Options) -> list[str]:
    built = pipeline.build(replica, options.endpoint)
    built.shutdown()
    return built.description


def _state(url: str) -> str:
    """What an export without content is answered."""
    given = parse_env_headers(os.environ.get("OTEL_EXPORTER_OTLP_HEADERS", ""), liberal=True)
    headers = {"Content-Type": "application/x-protobuf", **given}
    try:
        response = requests.post(url, data=b"", headers=headers, timeout=_TIMEOUT_S)
    except requests.ConnectionError:
        return "nobody listens there; a2a-fencing dashboard would"
    except requests.RequestException as error:
        return f"does not work ({type(error).__name__})"
    return "takes them" if response.ok else f"does not take them (HTTP {response.status_code})"
