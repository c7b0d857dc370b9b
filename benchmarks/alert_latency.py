"""How long after a terminal state was overwritten a person sees the alert.

`a2a-fencing demo` under its load, all of it in real processes, and the alerts page in a real browser. A
trigger in the tasks' own database notes when each finished task was given another state, an observer in
the page when the task's alert was drawn: both clocks are this machine's. Between them lie the replica's
outbox, the receiver, its checker and its commit, the dashboard's refresh and the browser's drawing; the
store tells when the receiver concluded, so that what comes before and what comes after is told apart.

    python benchmarks/alert_latency.py [--seconds 60] [--concurrency 12]
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from a2a_fencing import conventions as c
from a2a_fencing_dashboard.ports import free_port
from a2a_fencing_dashboard.store import open_store
from a2a_fencing_dashboard.store.protocol import Window

HOST = "127.0.0.1"
TARGET_S = 2.0
AFTERWARDS_S = 5.0
"""How long the last alerts may take to be drawn."""
READY_S = 60.0
FLAGS = ["--no-sandbox", "--disable-background-networking", "--disable-component-update"]
COMMAND = [sys.executable, "-m", "a2a_fencing_dashboard", "demo"]

TERMINAL = ", ".join(f"'TASK_STATE_{state}'" for state in sorted(c.TERMINAL_STATES))
TRIGGER = f"""
CREATE TABLE overwritten (task TEXT PRIMARY KEY, at REAL);
CREATE TRIGGER note_overwritten AFTER UPDATE OF status ON tasks
WHEN json_extract(old.status, '$.state') IN ({TERMINAL})
    AND json_extract(new.status, '$.state') <> json_extract(old.status, '$.state')
BEGIN
    INSERT OR IGNORE INTO overwritten VALUES (new.id, (julianday('now') - 2440587.5) * 86400.0);
END;
"""
OBSERVE = """
window.seen = {};
let waiting = false;
const look = () => {
    waiting = false;
    for (const element of document.querySelectorAll('[class*="st-key-id-"]')) {
        const task = element.innerText.trim();
        if (task && !(task in window.seen)) window.seen[task] = Date.now() / 1000;
    }
};
new MutationObserver(() => {
    if (!waiting) { waiting = true; requestAnimationFrame(look); }
}).observe(document, {subtree: true, childList: true, characterData: true});
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--concurrency", type=int, default=12, help="clients of the demo")
    parser.add_argument("--chromium", default=os.environ.get("A2A_FENCING_CHROMIUM") or "chromium")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        port = free_port(HOST, 0, exact=True)
        with demo(folder, port, arguments.seconds, arguments.concurrency) as told:
            note_overwritten(folder / "tasks.sqlite")
            seen, since = watch(f"http://{HOST}:{port}", shutil.which(arguments.chromium), told)
        overwritten = {
            task: at for task, at in read_overwritten(folder / "tasks.sqlite").items() if at > since
        }
        concluded = read_concluded(f"sqlite:///{folder / 'facts.sqlite'}", overwritten)
    return tell(overwritten, concluded, seen)


@contextlib.contextmanager
def demo(folder: Path, port: int, seconds: float, concurrency: int) -> Iterator[Iterator[str]]:
    """The demo in processes of its own; gives what it prints."""
    options = {
        "--folder": folder,
        "--port": port,
        "--otlp-port": free_port(HOST, 0, exact=True),
        "--seconds": seconds,
        "--concurrency": concurrency,
    }
    command = [*COMMAND, *(str(word) for option in options.items() for word in option)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield iter(process.stdout)
    finally:
        process.send_signal(signal.SIGINT)
        process.stdout.close()
        process.wait(60)


def note_overwritten(database: Path) -> None:
    """Lets the tasks' database note when a finished task is given another state."""
    deadline = time.monotonic() + READY_S
    while time.monotonic() < deadline:
        with contextlib.suppress(sqlite3.Error), contextlib.closing(_opened(database)) as db:
            if db.execute("SELECT 1 FROM sqlite_master WHERE name = 'tasks'").fetchone():
                db.executescript(TRIGGER)
                return
        time.sleep(0.01)
    sys.exit("the demo does not start")


def _opened(database: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{database.as_uri()}?mode=rw", uri=True, timeout=READY_S)


def watch(url: str, chromium: str | None, told: Iterator[str]) -> tuple[dict[str, float], float]:
    """Looks at the alerts page until the load is over: when each task's alert was drawn, and since when
    somebody looked.
    """
    _wait_for(f"{url}/_stcore/health")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, headless=True, args=FLAGS)
        page = browser.new_page(viewport={"width": 1400, "height": 900})
        page.add_init_script(OBSERVE)
        page.goto(f"{url}/alerts")
        page.get_by_test_id("stMainBlockContainer").wait_for(timeout=1000 * READY_S)
        since = time.time()
        for line in told:
            print(line, end="", flush=True)
            if "stays at" in line:
                break
        page.wait_for_timeout(1000 * AFTERWARDS_S)
        seen: dict[str, float] = page.evaluate("window.seen")
        browser.close()
    return seen, since


def _wait_for(url: str) -> None:
    deadline = time.monotonic() + READY_S
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError):
            urllib.request.urlopen(url, timeout=2).close()
            return
        time.sleep(0.1)
    sys.exit("the dashboard does not answer")


def read_overwritten(database: Path) -> dict[str, float]:
    """Tasks whose terminal state was overwritten, and when, s since 1970."""
    with contextlib.closing(_opened(database)) as db:
        return dict(db.execute("SELECT task, at FROM overwritten").fetchall())


def read_concluded(store_url: str, tasks: Collection[str]) -> dict[str, float]:
    """When the receiver concluded the first violation of each of these tasks, s since 1970."""
    store = open_store(store_url)
    try:
        rows, _ = store.findings(Window(), limit=1_000_000)
    finally:
        store.close()
    concluded: dict[str, float] = {}
    for row in rows:
        task = row.finding.task.task_id
        if row.finding.violates and task in tasks:
            concluded[task] = min(
                concluded.get(task, row.seen_unix_nano / 1e9), row.seen_unix_nano / 1e9
            )
    return concluded


def tell(overwritten: dict[str, float], concluded: dict[str, float], seen: dict[str, float]) -> int:
    shown = [task for task in overwritten if task in seen and task in concluded]
    if not shown:
        print("no alert was seen")
        return 1
    whole = [seen[task] - overwritten[task] for task in shown]
    print(f"\n{len(shown):,} of {len(overwritten):,} overwritten tasks were seen on the alerts page")
    print(f"{'seconds':36}{'p50':>8}{'p99':>8}{'max':>8}")
    _row("write to conclusion", [concluded[task] - overwritten[task] for task in shown])
    _row("conclusion to screen", [seen[task] - concluded[task] for task in shown])
    _row(f"write to screen (target {TARGET_S:g})", whole)
    return 0


def _row(name: str, values: Sequence[float]) -> None:
    figures: Any = sorted(values)
    p50, p99 = (figures[min(len(figures) - 1, int(share * len(figures)))] for share in (0.5, 0.99))
    print(f"{name:36}{p50:8.2f}{p99:8.2f}{figures[-1]:8.2f}")


if __name__ == "__main__":
    sys.exit(main())
