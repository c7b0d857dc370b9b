"""Tells which of the known formats a file is in, and reads it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, TextIO

from a2a_fencing.facts import Fact, MalformedFactError
from a2a_fencing_dashboard.histories import jaeger, otlp
from a2a_fencing_dashboard.histories.errors import HistoryError

_SQLITE_MAGIC: Final = b"SQLite format 3\x00"
_EXPECTED: Final = "expected OTLP JSON lines, Jaeger's JSON download or a dashboard store"


def read_history(path: Path) -> Iterator[Fact]:
    """The facts in a file, in the file's order; a fact that is in it twice comes twice.

    Args:
        path: OTLP JSON lines as the Collector's file exporter writes them, Jaeger's JSON download, or
            a dashboard store in SQLite.

    Raises:
        HistoryError: The file cannot be read, or is in none of these formats.
    """
    try:
        with path.open("rb") as file:
            is_store = file.read(len(_SQLITE_MAGIC)) == _SQLITE_MAGIC
        if is_store:
            yield from _stored(path)
        else:
            with path.open(encoding="utf-8") as text:
                yield from _written(text, path)
    except OSError as error:
        raise HistoryError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError:
        raise HistoryError(f"{path}: not text; {_EXPECTED}") from None


def _stored(path: Path) -> Iterator[Fact]:
    # A store brings libraries that text formats do without.
    from a2a_fencing_dashboard.store import StoreError, open_store

    try:
        store = open_store(f"sqlite:///{path.resolve()}")
    except StoreError as error:
        raise HistoryError(str(error)) from error
    try:
        yield from store.facts()
    except StoreError as error:
        raise HistoryError(str(error)) from error
    finally:
        store.close()


def _written(text: TextIO, path: Path) -> Iterator[Fact]:
    """One JSON document a line or, where the first line is not one, a single document."""
    documents = 0
    for number, line in enumerate(text, start=1):
        if not line.strip():
            continue
        try:
            document = json.loads(line)
        except ValueError as error:
            if documents:
                raise HistoryError(f"{path}, line {number}: not JSON ({error})") from None
            break
        documents += 1
        yield from _facts(document, f"{path}, line {number}")
    else:
        return
    text.seek(0)
    try:
        document = json.load(text)
    except ValueError as error:
        raise HistoryError(f"{path}: not JSON ({error}); {_EXPECTED}") from None
    yield from _facts(document, str(path))


def _facts(document: Any, place: str) -> Iterator[Fact]:
    if otlp.is_document(document):
        read = otlp.facts
    elif jaeger.is_document(document):
        read = jaeger.facts
    else:
        raise HistoryError(f"{place}: {_EXPECTED}")
    try:
        yield from read(document)
    except MalformedFactError as error:
        raise HistoryError(f"{place}: malformed fact: {error}") from error
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise HistoryError(f"{place}: not as it should be: {error!r}") from error
