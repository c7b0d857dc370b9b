"""Tells which of the known formats a file is in, and reads it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from a2a_fencing.facts import Fact, MalformedFactError
from a2a_fencing_dashboard.histories import jaeger, otlp
from a2a_fencing_dashboard.histories.errors import HistoryError
from a2a_fencing_dashboard.receiver.otlp.decode import UndecodableError
from a2a_fencing_dashboard.store import StoreError, open_store
from a2a_fencing_dashboard.store.protocol import Span

_SQLITE_MAGIC: Final = b"SQLite format 3\x00"
_EXPECTED: Final = "expected OTLP JSON lines, Jaeger's JSON download or a dashboard store"
_TOP_LEVEL: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_NO_JSON: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def read_history(path: Path, spans: list[Span] | None = None) -> Iterator[Fact]:
    """The facts in a file, as `read_places` does."""
    return (fact for fact, _ in read_places(path, spans))


def read_places(path: Path, spans: list[Span] | None = None) -> Iterator[tuple[Fact, int | None]]:
    """The facts in a file, in the file's order; a fact that is in it twice comes twice.

    Args:
        path: OTLP JSON lines as the Collector's file exporter writes them, Jaeger's JSON download, or
            a dashboard store in SQLite.
        spans: Where spans go, of the formats that have some: OTLP.

    Yields:
        Each fact, and the line it stands in, from 1; None where the file has no lines of its own.

    Raises:
        HistoryError: The file cannot be read, or is in none of these formats.
    """
    try:
        with path.open("rb") as file:
            is_store = file.read(len(_SQLITE_MAGIC)) == _SQLITE_MAGIC
        if is_store:
            yield from ((fact, None) for fact in _stored(path))
        else:
            yield from _written(path, spans)
    except OSError as error:
        raise HistoryError(f"{path}: {error.strerror}") from error


def _stored(path: Path) -> Iterator[Fact]:
    try:
        store = open_store(f"sqlite:///{path.resolve()}")
        try:
            yield from store.facts()
        finally:
            store.close()
    except StoreError as error:
        raise HistoryError(str(error)) from error
    except (msgspec.DecodeError, TypeError) as error:
        raise HistoryError(f"{path}: a fact in it is damaged: {error}") from error


def _written(path: Path, spans: list[Span] | None) -> Iterator[tuple[Fact, int | None]]:
    """One JSON document a line or, where the first line is not one, a single document."""
    documents = 0
    with path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                fields = _TOP_LEVEL.decode(line)
            except _NO_JSON as error:
                if documents or isinstance(error, msgspec.ValidationError | RecursionError):
                    raise HistoryError(f"{path}, line {number}: {error}; {_EXPECTED}") from None
                break
            documents += 1
            for fact in _facts(line, fields, f"{path}, line {number}", spans):
                yield fact, number
        else:
            return
    document = path.read_bytes()
    try:
        fields = _TOP_LEVEL.decode(document)
    except _NO_JSON as error:
        raise HistoryError(f"{path}: {error}; {_EXPECTED}") from None
    for fact in _facts(document, fields, str(path), spans):
        yield fact, None


def _facts(
    document: bytes, fields: dict[str, msgspec.Raw], place: str, spans: list[Span] | None
) -> Iterator[Fact]:
    signal = next((otlp.SIGNALS[name] for name in fields if name in otlp.SIGNALS), None)
    try:
        if signal is not None:
            yield from otlp.facts(document, signal, spans)
        elif jaeger.FIELD in fields:
            yield from jaeger.facts(fields[jaeger.FIELD])
        else:
            raise HistoryError(f"{place}: {_EXPECTED}")
    except MalformedFactError as error:
        raise HistoryError(f"{place}: malformed fact: {error}") from error
    except (UndecodableError, msgspec.DecodeError, ValueError, RecursionError) as error:
        raise HistoryError(f"{place}: {error}") from error
