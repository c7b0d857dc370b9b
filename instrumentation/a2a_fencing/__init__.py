"""Observability and fencing for A2A agents that run on more than one replica.

PYTEST_DONT_REWRITE, as pytest would: it warns where it comes too late for a package with a plugin,
as under ``opentelemetry-instrument pytest``.
"""

from __future__ import annotations

from a2a_fencing.dispatch import dispatch
from a2a_fencing.guard import guard
from a2a_fencing.instrumentor import A2AFencingInstrumentor

__all__ = ["dispatch", "guard", "instrument", "uninstrument"]


def instrument(
    *,
    endpoint: str | None = None,
    run: str | None = None,
    guard: bool | str | None = None,
    audit: bool | None = None,
    heartbeat_interval: float | None = None,
    sql_spans: bool | None = None,
    token_secret: str | None = None,
) -> None:
    """Starts observing every A2A server in this process; call it before or after they exist.

    Each keyword is also an environment variable ``A2A_FENCING_<NAME>``. Calling it again is harmless
    and changes nothing. ``OTEL_SDK_DISABLED=true`` makes it do nothing.

    Args:
        endpoint: OTLP/HTTP base URL that facts go to besides the application's own pipeline. When
            nothing at all is configured, facts go to ``http://localhost:4318``.
        run: Label of a load-test run.
        guard: Enforce what is otherwise only observed: True, or one rule alone, ``"store"`` or
            ``"consumer"``.
        audit: Re-read the stored state before each write, which finds writers that bypass the SDK.
        heartbeat_interval: Seconds between heartbeats, 5 by default.
        sql_spans: SQL spans under our write spans; by default where the application traces anyway.
        token_secret: What fencing tokens are signed with, for resources that ask for it.

    Raises:
        ValueError: A setting cannot be understood; the text names it.
    """
    instrumentor = A2AFencingInstrumentor()
    if not instrumentor.is_instrumented_by_opentelemetry:
        instrumentor.instrument(
            skip_dep_check=True,
            endpoint=endpoint,
            run=run,
            guard=guard,
            audit=audit,
            heartbeat_interval=heartbeat_interval,
            sql_spans=sql_spans,
            token_secret=token_secret,
        )


def uninstrument() -> None:
    """Puts everything back as it was, also under another library's wrapper."""
    instrumentor = A2AFencingInstrumentor()
    if instrumentor.is_instrumented_by_opentelemetry:
        instrumentor.uninstrument()
