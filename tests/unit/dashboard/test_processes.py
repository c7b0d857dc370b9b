from __future__ import annotations

import contextlib
import os
import runpy
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from a2a_fencing_dashboard.ports import free_port
from a2a_fencing_dashboard.processes import ChildError, Supervisor

HOST = "127.0.0.1"
# A signal that comes right before accept() does not wake it: a moment later it has to look. What the
# signal raises while Python warns of a connection that nobody closed is swallowed: this one closes it.
LISTEN = """
import socket
{first}
sock = socket.create_server(("127.0.0.1", {port}))
sock.settimeout(0.1)
while True:
    try:
        sock.accept()[0].close()
    except TimeoutError:
        pass
"""


def script(folder: Path, text: str) -> str:
    path = folder / "child.py"
    path.write_text(text)
    return str(path)


def end_of(pid: int) -> bool:
    """Waits until a process that is not our child has ended."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([descriptor], [], [], 30)[0])
    finally:
        os.close(descriptor)


def test_leaving_the_block_lets_children_run_their_exit_handlers(tmp_path: Path) -> None:
    port = free_port(HOST, 0, exact=True)
    note = tmp_path / "note"
    first = f"import atexit, pathlib; atexit.register(pathlib.Path({str(note)!r}).touch)"
    with Supervisor() as supervisor:
        path = script(tmp_path, LISTEN.format(port=port, first=first))
        child = supervisor.start("web", runpy.run_path, path_name=path)
        supervisor.wait_listening(child, HOST, port)
        supervisor.check()
    assert child.exitcode == 0
    assert note.exists()


def test_a_child_that_will_not_end_is_killed(tmp_path: Path) -> None:
    port = free_port(HOST, 0, exact=True)
    first = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)"
    with Supervisor(grace_s=0.1) as supervisor:
        path = script(tmp_path, LISTEN.format(port=port, first=first))
        child = supervisor.start("stubborn", runpy.run_path, path_name=path)
        supervisor.wait_listening(child, HOST, port)
    assert child.exitcode == -signal.SIGKILL


def test_a_child_that_ends_is_named_with_its_exit_code() -> None:
    with Supervisor() as supervisor:
        supervisor.start("receiver", os._exit, status=3)
        with pytest.raises(ChildError, match=r"^receiver ended with exit code 3$"):
            supervisor.wait()


def test_a_child_that_is_killed_is_named_with_the_signal(tmp_path: Path) -> None:
    with Supervisor() as supervisor:
        path = script(tmp_path, "import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
        supervisor.start("receiver", runpy.run_path, path_name=path)
        with pytest.raises(ChildError, match=r"^receiver was ended by SIGKILL$"):
            supervisor.wait()


def test_waiting_for_a_child_that_ends_first_says_so() -> None:
    port = free_port(HOST, 0, exact=True)
    with Supervisor() as supervisor:
        child = supervisor.start("receiver", os._exit, status=3)
        with pytest.raises(ChildError, match="receiver ended with exit code 3"):
            supervisor.wait_listening(child, HOST, port)


def test_waiting_for_a_silent_child_ends_with_its_address(tmp_path: Path) -> None:
    port = free_port(HOST, 0, exact=True)
    with Supervisor() as supervisor:
        path = script(tmp_path, "import signal; signal.pause()")
        child = supervisor.start("receiver", runpy.run_path, path_name=path)
        with pytest.raises(ChildError, match=f"receiver does not answer on {HOST}:{port}"):
            supervisor.wait_listening(child, HOST, port, timeout_s=0.1)


def test_an_operating_system_error_of_a_child_is_one_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with Supervisor() as supervisor:
        supervisor.start("receiver", runpy.run_path, path_name=str(tmp_path / "absent.py"))
        with pytest.raises(ChildError, match="receiver ended with exit code 1"):
            supervisor.wait()
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("receiver: ")
    assert "absent.py" in lines[0]


PARENT = """
import runpy, sys
from a2a_fencing_dashboard.processes import Supervisor
try:
    with Supervisor() as supervisor:
        child = supervisor.start("web", runpy.run_path, path_name=sys.argv[1])
        supervisor.wait_listening(child, "127.0.0.1", int(sys.argv[2]))
        print(child.pid, flush=True)
        supervisor.wait()
except KeyboardInterrupt:
    print("stopped with", child.exitcode, flush=True)
"""


@contextlib.contextmanager
def family(folder: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A parent in a process group of its own, and the pid of its child."""
    port = free_port(HOST, 0, exact=True)
    path = script(folder, LISTEN.format(port=port, first=""))
    command = [sys.executable, "-c", PARENT, path, str(port)]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as parent:
        try:
            assert parent.stdout is not None
            yield parent, int(parent.stdout.readline())
        finally:
            parent.kill()


def test_children_end_when_their_parent_is_killed(tmp_path: Path) -> None:
    with family(tmp_path) as (parent, child_pid):
        parent.kill()
        assert end_of(child_pid)


def test_ctrl_c_ends_everything_quietly(tmp_path: Path) -> None:
    with family(tmp_path) as (parent, child_pid):
        os.killpg(parent.pid, signal.SIGINT)
        out, err = parent.communicate()
        assert (out, err) == ("stopped with 0\n", "")
        assert end_of(child_pid)


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGHUP])
def test_other_ways_to_be_stopped_are_like_ctrl_c(tmp_path: Path, signum: signal.Signals) -> None:
    with family(tmp_path) as (parent, child_pid):
        parent.send_signal(signum)
        out, err = parent.communicate()
        assert (out, err) == ("stopped with 0\n", "")
        assert end_of(child_pid)
