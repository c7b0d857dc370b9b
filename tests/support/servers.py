"""Servers of the examples, run as their READMEs say."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from support.ports import own_port

HOST = "127.0.0.1"
EXAMPLES = Path(__file__).parents[2] / "examples"


@contextlib.contextmanager
def example(
    script: str, *options: str, folder: Path, ready: str, endpoint: str = f"http://{HOST}:1"
) -> Iterator[str]:
    """Runs ``examples/<script> --port N`` in `folder` until `ready` answers; gives its base URL.

    Its facts go to `endpoint`. Nobody listens there by default: a server must not mind.
    """
    port = own_port()
    environment = {**os.environ, "A2A_FENCING_ENDPOINT": endpoint}
    command = [sys.executable, str(EXAMPLES / script), "--port", str(port), *options]
    with subprocess.Popen(command, cwd=folder, env=environment) as process:
        try:
            url = f"http://{HOST}:{port}"
            _wait_for(url + ready, process)
            yield url
        finally:
            process.terminate()


def _wait_for(url: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        assert process.poll() is None, "the server ended"
        with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=5):
            return
        time.sleep(0.05)
    raise AssertionError("the server does not answer")
