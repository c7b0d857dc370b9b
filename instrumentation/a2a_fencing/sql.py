"""SQL spans under our write spans, by OpenTelemetry's own SQLAlchemy instrumentation.

Its latest release declares itself unfit for SQLAlchemy 2.1, which the SDK resolves to; the hooks it uses
are still there, so the declaration is skipped and a test watches that the spans do come.
"""

from __future__ import annotations

import gc
import logging

from opentelemetry import trace

_log = logging.getLogger("a2a_fencing")


class SqlSpans:
    """Switches SQL spans on for engines that exist and that come later."""

    def __init__(self) -> None:
        self._ours = False

    def install(self, tracer_provider: trace.TracerProvider) -> str:
        """Instruments SQLAlchemy and says in one line what came of it."""
        try:
            from opentelemetry.instrumentation.sqlalchemy import SQLAlchemyInstrumentor
        except ImportError:
            return "no SQL spans: SQLAlchemy is not installed"
        instrumentor = SQLAlchemyInstrumentor()
        if instrumentor.is_instrumented_by_opentelemetry:
            return "SQL spans: by the application"
        try:
            instrumentor.instrument(
                skip_dep_check=True, tracer_provider=tracer_provider, engines=_existing_engines()
            )
        except Exception as error:
            reason = f"no SQL spans: {type(error).__name__} in opentelemetry-instrumentation-sqlalchemy"
            _log.warning(reason)
            return reason
        self._ours = True
        return "SQL spans: on"

    def remove(self) -> None:
        """Takes back what `install` did."""
        if self._ours:
            from opentelemetry.instrumentation.sqlalchemy import SQLAlchemyInstrumentor

            SQLAlchemyInstrumentor().uninstrument()
            self._ours = False


def _existing_engines() -> list[object]:
    """Engines made before us; SQLAlchemy keeps no list of them."""
    from sqlalchemy.engine import Engine

    # By type, not isinstance: that would ask every proxy in the process for its class.
    return [thing for thing in gc.get_objects() if issubclass(type(thing), Engine)]
