"""Replica processes over one SQLite file, and what they export, as a Collector writes it to a file."""

from __future__ import annotations

import base64
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from support.otlp_sink import Sink, otlp_sink

TESTS = Path(__file__).parents[2]
ELSEWHERE = "/data"
"""Where the recorded files say that the database was."""

_REQUESTS = {"/v1/logs": ExportLogsServiceRequest, "/v1/traces": ExportTraceServiceRequest}
_HEXADECIMAL = frozenset({"traceId", "spanId", "parentSpanId"})


class Process:
    """A replica in a process of its own; its commands are methods here."""

    def __init__(self, process: subprocess.Popen[str], log: Path) -> None:
        self._process = process
        self._log = log
        self._answer()

    def __getattr__(self, command: str) -> Any:
        def do(*arguments: Any, **options: Any) -> Any:
            assert self._process.stdin is not None
            self._process.stdin.write(json.dumps([command, arguments, options]) + "\n")
            self._process.stdin.flush()
            return self._answer()

        return do

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise self._ended()
        return json.loads(line)

    def stop(self) -> None:
        """Ends it in good order: what it has recorded is exported."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        if self._process.wait(60) != 0:
            raise self._ended()

    def _ended(self) -> RuntimeError:
        return RuntimeError(f"replica ended with code {self._process.wait()}: {self._log.read_text()}")


class Recording:
    """A cluster whose exports are kept.

    Attributes:
        database: The SQLite file that the replicas share.
    """

    def __init__(self, folder: Path, sink: Sink, open_processes: ExitStack) -> None:
        self.database = folder / "tasks.db"
        self._sink = sink
        self._open = open_processes
        self._running: list[Process] = []

    def replica(self, name: str, *options: str) -> Process:
        """Starts a replica."""
        log = self.database.with_name(f"{name}.log")
        with log.open("w") as stderr:
            process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "support.recording.replica", *options),
                    *("--dsn", f"sqlite+aiosqlite:///{self.database}", "--endpoint", self._sink.url),
                ],
                cwd=TESTS,
                env={**os.environ, "A2A_FENCING_REPLICA_NAME": name},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
            )
        self._open.enter_context(process)
        self._open.callback(process.kill)
        replica = Process(process, log)
        self._running.append(replica)
        return replica

    def run_sql(self, statement: str) -> None:
        """Writes past the SDK."""
        with closing(sqlite3.connect(self.database, timeout=30)) as connection, connection:
            connection.execute(statement)

    def lines(self) -> list[str]:
        """Ends the replicas; one line of JSON for each request they exported."""
        for replica in self._running:
            replica.stop()
        self._running.clear()
        here = str(self.database.parent)
        exported = [(path, body) for path, _, body, code in self._sink.requests if code == 200]
        return [
            _line(_REQUESTS[path].FromString(body)).replace(here, ELSEWHERE) for path, body in exported
        ]


@contextmanager
def recording(folder: Path) -> Iterator[Recording]:
    """A cluster without replicas yet; those that are started end with the block."""
    with otlp_sink() as sink, ExitStack() as open_processes:
        yield Recording(folder.resolve(), sink, open_processes)


def _line(message: Any) -> str:
    return json.dumps(_hexadecimal(MessageToDict(message, use_integers_for_enums=True)))


def _hexadecimal(value: Any) -> Any:
    """Ids as OTLP's JSON wants them, where protobuf's own JSON has base64."""
    if isinstance(value, dict):
        return {
            key: base64.b64decode(item).hex() if key in _HEXADECIMAL else _hexadecimal(item)
            for key, item in value.items()
        }
    return [_hexadecimal(item) for item in value] if isinstance(value, list) else value
