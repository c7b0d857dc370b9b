"""OTLP in JSON, as the Collector's file exporter writes it: one export a line."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from a2a_fencing import conventions as c
from a2a_fencing.facts import Fact, MalformedFactError
from a2a_fencing_dashboard.receiver.otlp.decode import JSON, LOGS, METRICS, TRACES, decode
from a2a_fencing_dashboard.store.protocol import Span

SIGNALS: Final = {"resourceLogs": LOGS, "resourceSpans": TRACES, "resourceMetrics": METRICS}
"""What an export's one field says of it."""


def facts(export: bytes, signal: str, spans: list[Span] | None = None) -> Iterator[Fact]:
    """The facts in one export.

    Args:
        export: A JSON document.
        signal: One of the values of `SIGNALS`.
        spans: Where spans go that the export holds.

    Raises:
        MalformedFactError: An event claims to be a fact but cannot be one.
        UndecodableError: The document is not OTLP.
    """
    found = decode(signal, JSON, export, _none_known)
    for complaint in found.malformed:
        # Spans may be odd in ways that concern no fact.
        if complaint.startswith(c.NAMESPACE):
            raise MalformedFactError(complaint)
    if spans is not None:
        spans += found.spans
    yield from found.facts


def _none_known(ids: Collection[str]) -> set[str]:
    return set()
