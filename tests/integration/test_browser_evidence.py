"""Evidence that a person takes along, and brings back, in a real browser: reports, histories, runs."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from a2a_fencing import conventions as c
from a2a_fencing_dashboard.store import open_store
from a2a_fencing_dashboard.store.protocol import TaskFilter, TaskRow, Window
from support.browser import PATIENCE_MS, task_path
from support.ports import own_port

playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
expect = playwright.expect

COMMAND = [
    sys.executable,
    "-c",
    "import sys; from a2a_fencing_dashboard.cli import main; sys.exit(main())",
]


@pytest.fixture(scope="module")
def two_runs(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What a cluster reported without the guard and then with it, in some seconds each."""
    folder = tmp_path_factory.mktemp("demo")
    for guard in ([], ["--guard"]):
        arguments = ["demo", "--headless", "--seconds", "6", "--folder", str(folder), *guard]
        done = subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    return f"sqlite:///{folder / 'facts.sqlite'}"


@pytest.fixture(scope="module")
def overwritten(two_runs: str) -> TaskRow:
    store = open_store(two_runs)
    rows, _ = store.tasks(Window(), TaskFilter(rules=(c.TERMINAL_OVERWRITTEN,)))
    store.close()
    return rows[0]


@pytest.fixture(scope="module")
def dashboard(serve, two_runs: str) -> str:
    return serve(two_runs)


def downloaded(page, button: str, tmp_path: Path) -> Path:
    """What the export menu of a page gives."""
    page.get_by_role("button", name="Export").first.click()
    with page.expect_download() as download:
        page.get_by_role("button", name=button, exact=True).first.click()
    path = tmp_path / download.value.suggested_filename
    download.value.save_as(path)
    return path


def test_the_report_of_a_task_opens_without_network(open_page, dashboard, overwritten, keep, tmp_path):
    page = open_page(dashboard + task_path(overwritten.key))
    headline = page.locator(".st-key-verdict-violated").get_by_text("was overwritten by").first
    expect(headline).to_be_visible()
    report = downloaded(page, "Report", tmp_path)
    assert report.name == f"a2a-fencing-{overwritten.key.task_id}.html"

    alone = page.context.new_page()
    asked: list[str] = []
    alone.on("request", lambda request: asked.append(request.url))
    alone.context.set_offline(True)
    alone.goto(report.as_uri())
    expect(alone.get_by_role("heading", name=headline.inner_text())).to_be_visible()
    expect(alone.locator(".timeline .main-svg").first).to_be_visible()
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
    alone.context.set_offline(False)


def test_a_history_comes_back_as_the_same_task(open_page, dashboard, overwritten, tmp_path):
    live = open_page(dashboard + task_path(overwritten.key))
    expect(live.locator(".st-key-story")).to_be_visible()
    history = downloaded(live, "OTLP JSON lines", tmp_path)

    page = open_page(f"{dashboard}/files")
    page.locator("input[type=file]").set_input_files(history)
    page.get_by_role("link", name="Look at it").click()
    expect(page.get_by_text("History file, not live")).to_be_visible()
    page.get_by_role("link", name="Open the task").click()
    expect(page.locator(".st-key-task-title")).to_have_text(overwritten.key.task_id)
    expect(page.get_by_text("History file, not live")).to_be_visible()
    story = live.locator(".st-key-story").inner_text()
    expect(page.locator(".st-key-story")).to_have_text(story, use_inner_text=True)

    elsewhere = open_page(page.url)
    expect(elsewhere.get_by_text("History file, not live")).to_be_visible()
    expect(elsewhere.locator(".st-key-story")).to_have_text(story, use_inner_text=True)


@pytest.fixture
def shown(two_runs: str, overwritten: TaskRow, tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """The URL of a dashboard of an exported file, and where it keeps what it makes of it."""
    history = tmp_path / "task.jsonl"
    path = two_runs.removeprefix("sqlite:///")
    arguments = ["export", path, "--task", overwritten.key.task_id, "--output", str(history)]
    subprocess.run([*COMMAND, *arguments], check=True, capture_output=True)
    folder = tmp_path / "temporary"
    folder.mkdir()
    port = own_port()
    with subprocess.Popen(
        [*COMMAND, "dashboard", "--open", str(history), "--port", str(port)],
        env={**os.environ, "TMPDIR": str(folder), "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        while not process.stdout.readline().startswith("Ctrl-C"):
            assert process.poll() is None, "the dashboard ended"
        yield f"http://127.0.0.1:{port}", folder
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
    assert not list(folder.glob("a2a-fencing-history-*"))


def test_the_command_line_shows_a_file(open_page, shown, overwritten):
    url, folder = shown
    assert list(folder.glob("a2a-fencing-history-*"))
    page = open_page(url + task_path(overwritten.key))
    expect(page.get_by_text("History file, not live")).to_be_visible()
    expect(page.get_by_text("task.jsonl")).to_be_visible()
    expect(page.locator(".st-key-verdict-violated")).to_contain_text("was overwritten by")


def test_runs_without_and_with_the_guard_are_compared(open_page, dashboard, keep):
    for theme in ("light", "dark"):
        page = open_page(f"{dashboard}/runs", color_scheme=theme)
        expect(page.get_by_text("guard off").first).to_be_visible()
        expect(page.get_by_text("guard on").first).to_be_visible()
        expect(page.locator("[class*=st-key-verdict-violated]")).to_have_count(1)
        expect(page.locator("[class*=st-key-verdict-fine]")).to_have_count(1)
        expect(page).to_have_url(re.compile(r"[?&]a=demo.*&b=demo.*with.the.guard"))
        # The drawing library comes last, which takes long on a busy machine.
        expect(page.locator(".js-plotly-plot")).to_have_count(2, timeout=3 * PATIENCE_MS)
        keep(page, f"runs-{theme}")
    elsewhere = open_page(page.url)
    elsewhere.get_by_role("button", name="Swap").click()
    expect(elsewhere).to_have_url(re.compile(r"[?&]a=demo.*with.the.guard&b=demo"))
