"""Commands that run until they are stopped, as processes of their own."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from a2a_fencing_dashboard.ports import listener
from support.ports import own_port

HOST = "127.0.0.1"
COMMAND = [
    sys.executable,
    "-c",
    "import sys; from a2a_fencing_dashboard.cli import main; sys.exit(main())",
]


@contextlib.contextmanager
def running(folder: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [*COMMAND, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def told(process: subprocess.Popen[str], last: str) -> dict[str, str]:
    """What a command prints while it starts, up to this line: first word -> rest."""
    assert process.stdout is not None
    lines: dict[str, str] = {}
    for line in process.stdout:
        word, _, rest = line.rstrip().partition(" ")
        lines[word] = rest.strip()
        if line.startswith(last):
            return lines
    _, err = process.communicate()
    raise AssertionError(f"ended after {lines}: {err}")


def answer(url: str) -> int:
    with urllib.request.urlopen(url, timeout=30) as response:
        return int(response.status)


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def have_ended(pids: list[int]) -> bool:
    """Waits until these processes, which are not our children, have ended."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            descriptor = os.pidfd_open(pid)
            try:
                if not select.select([descriptor], [], [], 30)[0]:
                    return False
            finally:
                os.close(descriptor)
    return True


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_the_dashboard_serves_until_it_is_stopped(tmp_path: Path, signum: signal.Signals) -> None:
    otlp, port = (own_port() for _ in range(2))
    arguments = ("dashboard", "--otlp-port", str(otlp), "--port", str(port))
    with running(tmp_path, *arguments) as process:
        lines = told(process, "Ctrl-C")
        assert lines["receiver"] == f"http://{HOST}:{otlp}"
        assert lines["dashboard"] == f"http://{HOST}:{port}"
        assert answer(lines["dashboard"]) == 200
        family = children(process.pid)
        os.killpg(process.pid, signum)
        _, err = process.communicate()
        assert (process.returncode, err) == (0, "stopped\n")
        assert have_ended(family)
    assert (tmp_path / "a2a-fencing.sqlite").exists()


def test_nothing_is_left_of_a_command_that_is_killed(tmp_path: Path) -> None:
    otlp, port = (own_port() for _ in range(2))
    arguments = ("dashboard", "--otlp-port", str(otlp), "--port", str(port))
    with running(tmp_path, *arguments) as process:
        told(process, "Ctrl-C")
        family = children(process.pid)
        assert len(family) >= 2
        process.kill()
        assert have_ended(family)


def test_a_receiver_that_dies_ends_the_rest_with_its_name(tmp_path: Path) -> None:
    otlp, port = (own_port() for _ in range(2))
    arguments = ("dashboard", "--otlp-port", str(otlp), "--port", str(port))
    with running(tmp_path, *arguments) as process:
        told(process, "Ctrl-C")
        family = children(process.pid)
        receiver = next(pid for pid in family if listens(pid, otlp))
        os.kill(receiver, signal.SIGKILL)
        _, err = process.communicate()
        assert process.returncode == 1
        assert err == "a2a-fencing: receiver was ended by SIGKILL\n"
        assert have_ended(family)


def listens(pid: int, port: int) -> bool:
    """Whether a process holds the listening socket of a port."""
    wanted = {
        fields[9]
        for line in Path("/proc/net/tcp").read_text().splitlines()[1:]
        if (fields := line.split())[3] == "0A" and int(fields[1].rpartition(":")[2], 16) == port
    }
    held = set()
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            held.add(os.readlink(link))
    return any(f"socket:[{inode}]" in held for inode in wanted)


def test_a_default_port_that_is_taken_gives_way_to_the_next(tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        # Somebody may be there already; either way the default is taken.
        with contextlib.suppress(OSError):
            stack.enter_context(listener(HOST, 4318, exact=True))
        with running(tmp_path, "collect") as process:
            lines = told(process, "Ctrl-C")
            url = lines["receiver"]
            number = int(url.rpartition(":")[2])
            assert number > 4318
            assert lines[""] == f"4318 is taken: start servers with A2A_FENCING_ENDPOINT={url}"
            request = urllib.request.Request(
                f"{url}/v1/logs", data=b"", headers={"Content-Type": "application/x-protobuf"}
            )
            with urllib.request.urlopen(request, timeout=30) as response:
                assert response.status == 200


def test_the_demo_ends_with_its_table_when_it_is_interrupted(tmp_path: Path) -> None:
    arguments = ("demo", "--headless", "--seconds", "600", "--folder", str(tmp_path))
    with running(tmp_path, *arguments) as process:
        told(process, "load")
        family = children(process.pid)
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate()
        assert (process.returncode, err) == (0, "")
        assert "history complete: " in out
        assert have_ended(family)


def test_a_replica_that_dies_ends_the_demo_with_its_name(tmp_path: Path) -> None:
    arguments = ("demo", "--headless", "--seconds", "600", "--folder", str(tmp_path))
    with running(tmp_path, *arguments) as process:
        lines = told(process, "load")
        port = int(lines["replicas"].split()[0].rpartition(":")[2])
        family = children(process.pid)
        os.kill(next(pid for pid in family if listens(pid, port)), signal.SIGKILL)
        _, err = process.communicate()
        assert process.returncode == 1
        assert err == f"a2a-fencing: api-0 was ended by SIGKILL (logs in {tmp_path})\n"
        assert have_ended(family)
