"""How the pages behave under the pointer and the keyboard while data arrive."""

from __future__ import annotations

import re

import pytest

from a2a_fencing_dashboard.store.protocol import TaskFilter, Window
from support.browser import task_path

playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
expect = playwright.expect

RANGE = "document.querySelector('.js-plotly-plot').layout.xaxis.range.map(String)"
DRAWN = ".js-plotly-plot .main-svg"


def test_the_rates_keep_their_zoom_when_data_arrive(open_page, serve, growing):
    page = open_page(f"{serve(growing.url)}/")
    page.locator(DRAWN).first.wait_for()
    chart = page.get_by_test_id("stPlotlyChart")
    chart.scroll_into_view_if_needed()
    before = page.evaluate(RANGE)
    box = chart.bounding_box()
    page.mouse.move(box["x"] + 400, box["y"] + 80)
    page.mouse.down()
    page.mouse.move(box["x"] + 700, box["y"] + 80, steps=8)
    page.mouse.up()
    page.wait_for_function(f"before => {RANGE}[0] !== before", arg=before[0])
    zoomed = page.evaluate(RANGE)
    growing()
    expect(page.locator(".st-key-verdict-violated")).to_contain_text("2 of 2 tasks")
    assert page.evaluate(RANGE) == zoomed


def test_a_fact_that_is_clicked_on_is_shown_in_full(open_page, serve, growing):
    key = growing.store.tasks(Window(), TaskFilter())[0][0].key
    page = open_page(serve(growing.url) + task_path(key))
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.reload()
    page.locator(DRAWN).first.wait_for()
    mark = page.locator(".scatterlayer .points path").first
    mark.scroll_into_view_if_needed()
    box = mark.bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    expect(page.locator(".st-key-detail")).to_contain_text("#1 api-0 wrote SUBMITTED, which became v1")
    assert [text for text in said if "Invalid" in text] == []


def test_time_zone_and_refresh_rate_are_in_the_link(open_page, serve, growing):
    page = open_page(f"{serve(growing.url)}/alerts", timezone_id="Asia/Kolkata")
    local = page.locator("[class*=st-key-small-print]").inner_text()
    page.get_by_role("button", name="tune").click()
    page.get_by_text("UTC", exact=True).click()
    page.get_by_text("15 s", exact=True).click()
    expect(page).to_have_url(re.compile(r"zone=UTC"))
    expect(page).to_have_url(re.compile(r"refresh=15\+s"))
    utc = page.locator("[class*=st-key-small-print]")
    expect(utc).not_to_have_text(local)
    again = open_page(page.url, timezone_id="Asia/Kolkata")
    expect(again.locator("[class*=st-key-small-print]")).to_have_text(utc.inner_text())


def test_the_keyboard_reaches_a_task_from_the_overview(open_page, serve, growing):
    page = open_page(f"{serve(growing.url)}/")
    link = page.locator(".st-key-verdict-violated").get_by_role("link", name="Open the task")
    expect(link).to_be_visible()
    for _ in range(40):
        page.keyboard.press("Tab")
        if link.evaluate("e => e === document.activeElement || e.contains(document.activeElement)"):
            break
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/task\?task=task-1"))


def test_a_tab_in_the_background_counts_on(open_page, serve, growing):
    page = open_page(f"{serve(growing.url)}/")
    expect(page).to_have_title(re.compile(r"^\(\d+\) "))
    before = page.title()
    page.context.new_page().bring_to_front()
    growing()
    expect(page).not_to_have_title(before)


def test_a_dashboard_that_is_gone_says_so_and_what_to_do(open_page, start, growing):
    server = start(growing.url)
    page = open_page(f"{server.url}/")
    expect(page.locator(".st-key-verdict-violated")).to_be_visible()
    server.kill()
    expect(page.get_by_text("Connection error")).to_be_visible()
