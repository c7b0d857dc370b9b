"""The dashboard in a real browser, on what a real cluster reported.

With ``A2A_FENCING_SCREENSHOTS`` set, what the pages looked like is kept in that directory.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Callable

import pytest

from a2a_fencing import conventions as c
from a2a_fencing_dashboard.ingest import Ingest
from a2a_fencing_dashboard.store import open_store
from a2a_fencing_dashboard.store.protocol import TaskFilter, TaskRow, Window
from support.browser import task_path
from support.reports import Cluster

playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")

DEMO = "from a2a_fencing_dashboard.cli import main; main()"


@pytest.fixture(scope="module")
def store_url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What a demo cluster of three replicas reported in some seconds."""
    folder = tmp_path_factory.mktemp("demo")
    arguments = ["demo", "--headless", "--seconds", "6", "--folder", str(folder)]
    done = subprocess.run(
        [sys.executable, "-c", DEMO, *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return f"sqlite:///{folder / 'facts.sqlite'}"


@pytest.fixture(scope="module")
def overwritten(store_url: str) -> TaskRow:
    """A task of that cluster that was overwritten."""
    store = open_store(store_url)
    rows, _ = store.tasks(Window(), TaskFilter(rules=(c.TERMINAL_OVERWRITTEN,)))
    store.close()
    return rows[0]


@pytest.fixture(scope="module")
def dashboard(serve: Callable[..., str], store_url: str) -> str:
    return serve(store_url)


SENTENCE = re.compile(
    r"CANCELED \(v\d+, api-\d\) was overwritten by (COMPLETED|WORKING) \(v\d+, api-\d\)"
)


def test_the_overwritten_task_is_one_click_away(open_page, dashboard):
    page = open_page(f"{dashboard}/")
    verdict = page.locator(".st-key-verdict-violated")
    playwright.expect(verdict).to_contain_text(
        "broke a rule; the gravest: a finished task was given another state"
    )
    verdict.get_by_role("link", name="Open the task").click()
    playwright.expect(page).to_have_url(re.compile(r"/task\?task="))
    playwright.expect(page.locator(".st-key-verdict-violated")).to_contain_text("proven")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1400, 900])
def test_every_page_in_both_themes_and_widths(open_page, dashboard, overwritten, keep, scheme, width):
    size = {"width": width, "height": 900}

    def show(path: str) -> None:
        page.set_viewport_size(size)
        page.goto(dashboard + path)

    page = open_page(f"{dashboard}/", color_scheme=scheme, viewport=size)
    page.locator(".js-plotly-plot .main-svg").first.wait_for()
    playwright.expect(page.get_by_text("terminal-overwritten").first).to_be_visible()
    keep(page, f"overview-{scheme}-{width}")

    show("/tasks?sort=worst+verdict+first")
    page.locator("[data-testid=stDataFrame] canvas").first.wait_for()
    keep(page, f"tasks-{scheme}-{width}")

    show(f"/alerts?rule={c.TERMINAL_OVERWRITTEN}")
    playwright.expect(page.get_by_text(SENTENCE).first).to_be_visible()
    keep(page, f"alerts-{scheme}-{width}")

    show(task_path(overwritten.key))
    page.locator(".js-plotly-plot .main-svg").first.wait_for()
    playwright.expect(page.locator(".st-key-verdict-violated").get_by_text(SENTENCE)).to_be_visible()
    keep(page, f"task-{scheme}-{width}")


def test_a_deep_link_is_the_first_thing_a_new_server_can_be_asked(
    open_page, serve, store_url, overwritten
):
    page = open_page(serve(store_url) + task_path(overwritten.key))
    playwright.expect(page.locator(".st-key-task-title")).to_have_text(overwritten.key.task_id)
    playwright.expect(page.locator(".st-key-verdict-violated")).to_be_visible()


def test_a_number_leads_to_the_list_behind_it_and_its_url_shows_the_same(open_page, dashboard):
    page = open_page(f"{dashboard}/?range=last+24+hours")
    row = page.locator("[class*=st-key-figure-violations-]", has_text="terminal-overwritten")
    number = row.get_by_role("link").inner_text()
    row.get_by_role("link").click()
    playwright.expect(page).to_have_url(re.compile(r"/tasks\?.*rule=terminal-overwritten"))
    playwright.expect(page).to_have_url(re.compile(r"range=last\+24\+hours"))
    playwright.expect(page.get_by_text(f"{number} task")).to_be_visible()
    again = open_page(page.url)
    playwright.expect(again.get_by_text(f"{number} task")).to_be_visible()
    playwright.expect(again.locator(".st-key-rule")).to_contain_text("terminal-overwritten")


def test_a_row_opens_the_task_that_it_names(open_page, dashboard, store_url):
    store = open_store(store_url)
    where = TaskFilter(rules=(c.TERMINAL_OVERWRITTEN,))
    rows, _ = store.tasks(Window(), where, sort="task_id", descending=False)
    store.close()
    page = open_page(f"{dashboard}/tasks?rule=terminal-overwritten&sort=by+task+id")
    table = page.get_by_test_id("stDataFrame")
    table.locator("canvas").first.wait_for()
    # Cells are painted, not elements: the first one of the second column, by where it is.
    box = table.bounding_box()
    cell = box["x"] + 180, box["y"] + 50
    page.mouse.move(*cell)
    playwright.expect(table.locator(".dvn-scroller")).to_have_css("cursor", "pointer")
    with page.context.expect_page() as opened:
        page.mouse.click(*cell)
    playwright.expect(opened.value.locator(".st-key-task-title")).to_have_text(rows[0].key.task_id)


def test_a_page_follows_the_data_and_holds_still_when_paused(open_page, serve, growing):
    page = open_page(f"{serve(growing.url)}/")
    headline = page.locator(".st-key-verdict-violated")
    playwright.expect(headline).to_contain_text("1 of 1 task")
    growing()
    playwright.expect(headline).to_contain_text("2 of 2 tasks")
    page.locator(".st-key-paused").get_by_text("Pause").click()
    playwright.expect(page.locator(".st-key-live")).to_contain_text("paused, nothing new")
    growing()
    playwright.expect(page.locator(".st-key-live")).to_contain_text("paused, newer data waits")
    playwright.expect(headline).to_contain_text("2 of 2 tasks")
    page.locator(".st-key-paused").get_by_text("Pause").click()
    playwright.expect(headline).to_contain_text("3 of 3 tasks")


def test_zoom_survives_data_of_other_tasks(open_page, serve, growing):
    page = open_page(f"{serve(growing.url)}/task?task=task-1&owner=alice&store=tasks+%40+postgresql")
    chart = page.get_by_test_id("stPlotlyChart")
    page.locator(".js-plotly-plot .main-svg").first.wait_for()
    box = chart.bounding_box()
    before = x_range(page)
    page.mouse.move(box["x"] + 600, box["y"] + 60)
    page.mouse.down()
    page.mouse.move(box["x"] + 400, box["y"] + 60, steps=5)
    page.mouse.up()
    page.wait_for_function(
        "before => document.querySelector('.js-plotly-plot').layout.xaxis.range[0] !== before",
        arg=before[0],
    )
    moved = x_range(page)
    growing()
    # The page has been drawn again when it names the task that is new.
    playwright.expect(page.locator(".st-key-neighbours")).to_contain_text("2 of 2")
    assert x_range(page) == moved


def x_range(page: playwright.Page) -> list[float]:
    return list(page.evaluate("document.querySelector('.js-plotly-plot').layout.xaxis.range"))


def test_it_stops_without_a_word_while_browsers_are_open(open_page, start, store_url):
    server = start(store_url)
    for path in ("/", "/alerts"):
        playwright.expect(open_page(server.url + path).get_by_text(SENTENCE).first).to_be_visible()
    server.stop()
    assert server.said.read_text() == ""


def test_without_the_token_nobody_gets_in(open_page, serve, store_url):
    url = serve(store_url, "s3cret")
    refused = open_page(f"{url}/")
    playwright.expect(refused.locator("body")).to_contain_text("needs a token")
    page = open_page(f"{url}/alerts?token=s3cret")
    playwright.expect(page).to_have_url(f"{url}/alerts")
    playwright.expect(page.get_by_text(SENTENCE).first).to_be_visible()


def test_a_store_that_comes_back_is_shown_without_a_reload(open_page, serve, tmp_path):
    path = tmp_path / "late.sqlite"
    path.write_text("this is no store " * 500)
    page = open_page(f"{serve(f'sqlite:///{path}')}/")
    playwright.expect(page.get_by_text("The store does not answer.")).to_be_visible()
    path.unlink()
    cluster = Cluster(start=time.time_ns())
    cluster.overwritten()
    cluster.heartbeats()
    store = open_store(f"sqlite:///{path}")
    Ingest(store).add(cluster.facts)
    store.close()
    playwright.expect(page.locator(".st-key-verdict-violated")).to_be_visible()
