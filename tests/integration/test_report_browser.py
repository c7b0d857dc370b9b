"""The HTML report in a real browser, opened from disk.

With ``A2A_FENCING_SCREENSHOTS`` set, what it looked like is kept in that directory.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from a2a_fencing.checker import check
from a2a_fencing_dashboard.histories import read_history
from a2a_fencing_dashboard.reports import Dossier
from a2a_fencing_dashboard.reports.html import as_html
from support.recording.cluster import TESTS
from support.reports import Cluster

playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")

CHROMIUM = os.environ.get("A2A_FENCING_CHROMIUM") or shutil.which("chromium")
if CHROMIUM is None:
    pytest.skip("no chromium on this machine", allow_module_level=True)

PATIENCE_MS = 30_000
HOSTILE = "<script>document.title = 'ran'</script><img src=x onerror=\"document.title = 'ran'\">"


@pytest.fixture(scope="module")
def browser() -> Iterator[playwright.Browser]:
    with playwright.sync_playwright() as engine:
        browser = engine.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


class Opened:
    """A report as a person has it open, and everything it asked for or complained of."""

    def __init__(self, page: playwright.Page, path: Path) -> None:
        self.page = page
        self.requests: list[str] = []
        self.errors: list[str] = []
        page.set_default_timeout(PATIENCE_MS)
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", self._said)
        page.goto(path.as_uri())

    def _said(self, message: playwright.ConsoleMessage) -> None:
        if message.type == "error":
            self.errors.append(message.text)

    def drawn(self) -> playwright.Locator:
        """The first timeline, once it is drawn."""
        frame = self.page.locator(".timeline").first
        frame.scroll_into_view_if_needed()
        plot = frame.locator(".main-svg").first
        plot.wait_for()
        return frame


def written(folder: Path, html: str) -> Path:
    path = folder / "report.html"
    path.write_text(html)
    return path


def report(folder: Path, facts: list) -> Path:
    return written(folder, as_html(Dossier.of(facts, check(facts))))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_opens_from_disk_and_draws_without_asking_for_anything(
    browser: playwright.Browser, tmp_path: Path, scheme: str
) -> None:
    facts = list(read_history(TESTS / "fixtures" / "histories" / "remote_cancel.jsonl"))
    path = report(tmp_path, facts)
    with browser.new_page(color_scheme=scheme, viewport={"width": 1280, "height": 900}) as page:
        opened = Opened(page, path)
        playwright.expect(page.locator("h1")).to_contain_text("Violated")
        frame = opened.drawn()
        playwright.expect(frame).to_contain_text("v3 CANCELED")
        playwright.expect(page.locator(".undrawn")).to_have_count(0)
        ink = page.evaluate("getComputedStyle(document.body).color")
        label = frame.locator(".yaxislayer-above text, .yaxislayer-below text").first
        assert label.evaluate("element => getComputedStyle(element).fill") == ink
        assert opened.requests == [path.as_uri()]
        assert opened.errors == []
        if folder := os.environ.get("A2A_FENCING_SCREENSHOTS"):
            page.screenshot(path=Path(folder) / f"report-{scheme}.png", full_page=True)


def test_it_follows_the_colour_scheme_while_it_is_open(
    browser: playwright.Browser, tmp_path: Path
) -> None:
    cluster = Cluster()
    cluster.overwritten()
    with browser.new_page(color_scheme="light") as page:
        label = Opened(page, report(tmp_path, cluster.facts)).drawn().locator(".legendtext").first
        fill = "element => getComputedStyle(element).fill"
        before = label.evaluate(fill)
        page.emulate_media(color_scheme="dark")
        ink = page.evaluate("getComputedStyle(document.body).color")
        assert ink != before
        playwright.expect(label).to_have_css("fill", ink)


def test_printing_shows_every_timeline_and_table(browser: playwright.Browser, tmp_path: Path) -> None:
    cluster = Cluster()
    for n in range(6):
        task = cluster.overwritten(f"task-{n}")
        for version in range(4, 40):
            task.write(cluster.a, "COMPLETED", version, version + 1)
    with browser.new_page() as page:
        opened = Opened(page, report(tmp_path, cluster.facts))
        opened.drawn()
        assert page.locator("details:not([open])").count() == 6
        page.pdf()
        playwright.expect(page.locator(".timeline .plot")).to_have_count(6)
        assert page.locator("details:not([open])").count() == 0


def test_hostile_text_neither_runs_nor_fetches(browser: playwright.Browser, tmp_path: Path) -> None:
    cluster = Cluster()
    cluster.a = cluster.replica(HOSTILE[:40], "a" * 36)
    cluster.heartbeats()
    cluster.overwritten(HOSTILE, owner=HOSTILE, context_id=HOSTILE, store=HOSTILE)
    path = report(tmp_path, cluster.facts)
    with browser.new_page() as page:
        opened = Opened(page, path)
        opened.drawn()
        assert page.title() == "Violated: a2a-fencing report"
        assert opened.requests == [path.as_uri()]
        assert opened.errors == []


def test_a_script_that_got_in_after_all_may_not_run(browser: playwright.Browser, tmp_path: Path) -> None:
    cluster = Cluster()
    cluster.overwritten()
    html = as_html(Dossier.of(cluster.facts, check(cluster.facts)))
    path = written(tmp_path, html.replace("<main>", f"<main>{HOSTILE}", 1))
    with browser.new_page() as page:
        opened = Opened(page, path)
        opened.drawn()
        assert page.title() == "Violated: a2a-fencing report"
        assert opened.errors
