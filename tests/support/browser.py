"""Dashboards in processes of their own, and a real browser to look at them.

With ``A2A_FENCING_SCREENSHOTS`` set, what pages looked like is kept in that directory.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from a2a_fencing.facts import TaskKey
from a2a_fencing_dashboard.ingest import Ingest
from a2a_fencing_dashboard.store import open_store
from a2a_fencing_dashboard.ui import links
from support.ports import own_port
from support.reports import Cluster

CHROMIUM = os.environ.get("A2A_FENCING_CHROMIUM") or shutil.which("chromium")
FLAGS = [
    "--no-sandbox",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
PATIENCE_MS = 30_000
SERVE = """
import sys
from a2a_fencing_dashboard.ui.server import serve
serve(sys.argv[1], port=int(sys.argv[2]), token=sys.argv[3] or None)
"""


def task_path(key: TaskKey) -> str:
    return f"/task?{urlencode(links.task_query(key))}"


class Server:
    """A dashboard in a process of its own."""

    def __init__(self, store_url: str, token: str, said: Path) -> None:
        self.port = own_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.said = said
        with said.open("w") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-c", SERVE, store_url, str(self.port), token],
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        self._wait_until_healthy()

    def kill(self) -> None:
        """Ends it as a machine that goes down would."""
        self._process.kill()
        self._process.wait(30)

    def stop(self) -> None:
        if self._process.poll() is not None:
            return
        self._process.terminate()
        # It shuts down in order and then lets the signal have its usual effect.
        assert self._process.wait(30) in (0, -signal.SIGTERM)

    def _wait_until_healthy(self) -> None:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            assert self._process.poll() is None, "the dashboard ended"
            try:
                urllib.request.urlopen(f"{self.url}/_stcore/health", timeout=2).close()
            except OSError:
                time.sleep(0.1)
            else:
                return
        pytest.fail("the dashboard does not answer")


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Server]]:
    """Starts dashboards, which are stopped at the end."""
    servers: list[Server] = []

    def started(store_url: str, token: str = "") -> Server:
        servers.append(Server(store_url, token, tmp_path_factory.mktemp("server") / "output"))
        return servers[-1]

    yield started
    for server in servers:
        server.stop()


@pytest.fixture(scope="module")
def serve(start: Callable[..., Server]) -> Callable[..., str]:
    """Starts a dashboard and gives its base URL."""
    return lambda *arguments: start(*arguments).url


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """The browser; tests are skipped where there is none."""
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("no chromium on this machine")
    playwright.expect.set_options(timeout=PATIENCE_MS)
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, headless=True, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def open_page(chromium: Any) -> Iterator[Callable[..., Any]]:
    """Opens a URL in a session of its own; whatever is asked for off this machine fails the test."""
    contexts = []
    outside: list[str] = []

    def opened(url: str, **options: object) -> Any:
        options = {"viewport": {"width": 1400, "height": 900}, **options}
        context = chromium.new_context(**options)
        context.set_default_timeout(PATIENCE_MS)
        contexts.append(context)
        page = context.new_page()
        page.on("request", lambda request: note(request.url))
        page.goto(url)
        return page

    def note(url: str) -> None:
        if not re.match(r"(https?|wss?)://127\.0\.0\.1:|data:|blob:", url):
            outside.append(url)

    yield opened
    for context in contexts:
        context.close()
    assert outside == []


@pytest.fixture
def keep(tmp_path: Path) -> Callable[[Any, str], None]:
    """Keeps what a page looks like, all of it."""
    folder = Path(os.environ.get("A2A_FENCING_SCREENSHOTS") or tmp_path)
    folder.mkdir(parents=True, exist_ok=True)

    def taken(page: Any, name: str) -> None:
        width = page.viewport_size["width"]
        height = page.evaluate("document.querySelector('[data-testid=stMain]').scrollHeight")
        page.set_viewport_size({"width": width, "height": max(700, min(height, 2_400))})
        page.wait_for_function("document.querySelectorAll('[data-testid=stSkeleton]').length === 0")
        page.screenshot(path=folder / f"{name}.png", animations="disabled")

    return taken


class Growing:
    """A store in which another task is overwritten at each call."""

    def __init__(self, path: Path) -> None:
        self.url = f"sqlite:///{path}"
        self.store = open_store(self.url)
        self.cluster = Cluster(start=time.time_ns())
        self._ingest = Ingest(self.store)
        self._count = 0
        self()

    def __call__(self) -> None:
        self._count += 1
        self.cluster.now = time.time_ns()
        self.cluster.overwritten(f"task-{self._count}")
        self.cluster.heartbeats()
        self._ingest.add(self.cluster.facts)


@pytest.fixture
def growing(tmp_path: Path) -> Iterator[Growing]:
    """A store that grows."""
    store = Growing(tmp_path / "growing.sqlite")
    yield store
    store.store.close()
