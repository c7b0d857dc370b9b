"""Facts as a table: a row a fact, a column a field, for spreadsheets and for data tools."""

from __future__ import annotations

from collections.abc import Iterable
from io import BytesIO
from operator import attrgetter
from typing import Any, Final

import pandas as pd

from a2a_fencing.facts import Fact
from a2a_fencing_dashboard.store.codec import FIELDS

_KEY: Final = ("store", "owner", "task_id", "incarnation")
_TEXTS: Final = ("base_version", "version")
"""Columns that hold numbers of one store and texts of another."""
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
"""What a spreadsheet takes for the beginning of a formula."""

_values = attrgetter(*FIELDS)


def table(facts: Iterable[Fact]) -> pd.DataFrame:
    """The facts with all their fields; ``time`` is the replica's clock in UTC."""
    columns = ("id", "replica", *_KEY, *FIELDS)
    rows = [(fact.id, fact.replica, *_task(fact), *_values(fact)) for fact in facts]
    frame: pd.DataFrame = pd.DataFrame(rows, columns=pd.Index(columns), dtype=object)
    for name in _TEXTS:
        frame[name] = frame[name].map(lambda value: None if value is None else str(value))
    frame["witness"] = frame["witness"].map(lambda ids: " ".join(ids) if ids else None)
    frame = frame.infer_objects().convert_dtypes()
    frame.insert(1, "time", pd.to_datetime(frame["time_unix_nano"], unit="ns", utc=True))
    return frame


def _task(fact: Fact) -> tuple[Any, ...]:
    task = fact.task
    return (None,) * 4 if task is None else (task.store, task.owner, task.task_id, task.incarnation)


def as_csv(facts: Iterable[Fact]) -> bytes:
    """The table as CSV in UTF-8.

    Ids and names come from outside: where one would be a formula to a spreadsheet, an apostrophe
    precedes it. Parquet and OTLP have it as it is.
    """
    frame = table(facts)
    for name in frame.columns:
        if pd.api.types.is_string_dtype(frame[name]):
            frame[name] = frame[name].map(_inert, na_action="ignore")
    return frame.to_csv(index=False, lineterminator="\n").encode("utf-8", "replace")


def _inert(text: object) -> object:
    return f"'{text}" if isinstance(text, str) and text.startswith(_FORMULA) else text


def as_parquet(facts: Iterable[Fact]) -> bytes:
    """The table as Parquet."""
    buffer = BytesIO()
    table(facts).to_parquet(buffer, index=False, engine="pyarrow")
    return buffer.getvalue()
