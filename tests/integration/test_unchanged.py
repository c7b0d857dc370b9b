"""Observation changes nothing: the same stored states, the same streams, the same order, with and
without it. Only the guard changes something, and only for what it refuses.
"""

from __future__ import annotations

import json
from contextlib import nullcontext
from typing import Any

import pytest
from a2a.types.a2a_pb2 import StreamResponse
from google.protobuf.json_format import MessageToDict

import a2a_fencing
from a2a_fencing.testing import capture
from support.databases import Database, database
from support.plays import PLAYS, QUIET, Play, Seen


class Names:
    """Numbers instead of ids and times, in the order in which they come up."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def plain(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self._named(key, inner) for key, inner in value.items()}
        return [self.plain(item) for item in value] if isinstance(value, list | tuple) else value

    def _named(self, key: str, value: Any) -> Any:
        if key == "timestamp":
            return "at some time"
        if key in ("id", "taskId", "contextId", "messageId"):
            return self._known.setdefault(value, f"id {len(self._known)}")
        return self.plain(value)


async def rows(dsn_database: Database) -> Seen:
    """Everything the SDK has stored."""
    tasks = await dsn_database.run(
        "SELECT v.version, t.status, t.artifacts, t.history FROM tasks t"
        " JOIN task_versions v ON v.task_id = t.id ORDER BY v.version, t.id"
    )
    log = await dsn_database.run("SELECT task_version, event_data FROM task_events ORDER BY seq")
    stored = [MessageToDict(StreamResponse.FromString(bytes(data))) for _, data in log]
    contents = [[version, *map(json.loads, columns)] for version, *columns in tasks]
    return [contents, [version for version, _ in log], stored]


# --- with and without ---


@pytest.mark.parametrize("play", PLAYS, ids=lambda play: play.__name__)
async def test_the_sdk_does_the_same_observed_or_not(
    tmp_path, monkeypatch: pytest.MonkeyPatch, play: Play
) -> None:
    monkeypatch.setenv("OTEL_LOGS_EXPORTER", "none")
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "none")
    outcomes = []
    for way in ("bare", "captured", "instrumented", "audited"):
        folder = tmp_path / way
        folder.mkdir()
        watching = {"captured": capture(), "audited": capture(audit=True)}.get(way, nullcontext())
        if way == "instrumented":
            a2a_fencing.instrument()
        try:
            with database("sqlite", folder) as db, watching:
                seen = await play(db.dsn)
                outcomes.append(Names().plain([seen, await rows(db)]))
        finally:
            a2a_fencing.uninstrument()
    assert outcomes[1:] == outcomes[:1] * 3


@pytest.mark.parametrize("play", QUIET, ids=lambda play: play.__name__)
async def test_the_guard_leaves_alone_what_it_has_no_reason_to_refuse(tmp_path, play: Play) -> None:
    outcomes = []
    for way in (nullcontext(), capture(guard=True)):
        folder = tmp_path / str(len(outcomes))
        folder.mkdir()
        with database("sqlite", folder) as db, way:
            seen = await play(db.dsn)
            outcomes.append(Names().plain([seen, await rows(db)]))
    assert outcomes[0] == outcomes[1]
