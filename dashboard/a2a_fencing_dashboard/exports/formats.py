"""The kinds of files there are, and what makes each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from a2a_fencing_dashboard.exports import otlp
from a2a_fencing_dashboard.exports.excerpt import Excerpt
from a2a_fencing_dashboard.exports.table import as_csv, as_parquet
from a2a_fencing_dashboard.reports.dossier import Dossier
from a2a_fencing_dashboard.reports.html import as_html


@dataclass(frozen=True, slots=True)
class Format:
    """One kind of file.

    Attributes:
        title: What people call it.
        suffix: Of the file's name.
        mime: Its media type.
        write: Makes it.
    """

    title: str
    suffix: str
    mime: str
    write: Callable[[Excerpt], bytes]


def _html(excerpt: Excerpt) -> bytes:
    dossier = Dossier.of(excerpt.facts, excerpt.judged())
    return as_html(dossier, told=excerpt.told).encode()


def _otlp(excerpt: Excerpt) -> bytes:
    return b"".join(otlp.lines((*excerpt.facts, *excerpt.omitted), excerpt.spans))


FORMATS: Final[Mapping[str, Format]] = {
    "html": Format("Report", "html", "text/html", _html),
    "otlp": Format("OTLP JSON lines", "jsonl", "application/x-ndjson", _otlp),
    "csv": Format("CSV", "csv", "text/csv", lambda excerpt: as_csv(excerpt.facts)),
    "parquet": Format(
        "Parquet", "parquet", "application/vnd.apache.parquet", lambda e: as_parquet(e.facts)
    ),
}
"""By the name that the command line has for it."""
