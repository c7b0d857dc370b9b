"""What a person comes to the dashboard for, done in a real browser."""

from __future__ import annotations

import contextlib
import re

import pytest

playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
expect = playwright.expect


def test_the_overwritten_task_is_found_in_two_clicks_and_its_link_shows_the_same(
    open_page, serve, growing
):
    growing()
    base = serve(growing.url)
    page = open_page(f"{base}/")
    row = page.locator("[class*=st-key-figure-violations-]", has_text="terminal-overwritten")
    row.get_by_role("link").click()
    expect(page.get_by_text("2 tasks")).to_be_visible()
    table = page.get_by_test_id("stDataFrame")
    table.locator("canvas").first.wait_for()
    # Cells are painted, not elements: the first one of the second column, by where it is.
    cell = {"x": 125, "y": 50}
    hover_until_it_is_a_link(page, table, cell)
    with page.context.expect_page() as opened:
        table.click(position=cell)
    seen = opened.value
    expect(seen.locator(".st-key-task-title")).to_have_text("task-2")
    story = seen.locator(".st-key-verdict-violated")
    expect(story).to_contain_text("CANCELED (v3, api-1) was overwritten by COMPLETED (v4, api-0)")

    elsewhere = open_page(seen.url)
    expect(elsewhere.locator(".st-key-task-title")).to_have_text("task-2")
    assert elsewhere.locator(".st-key-story").inner_text() == seen.locator(".st-key-story").inner_text()


def test_what_is_muted_with_a_reason_is_muted_for_everybody(open_page, serve, growing):
    base = serve(growing.url)
    page = open_page(f"{base}/alerts")
    fill(page, "Mute", "Ada", "known since Monday")
    expect(page.get_by_text("1 muted")).to_be_visible()

    elsewhere = open_page(f"{base}/alerts?muted=show")
    expect(elsewhere.get_by_text("terminal-overwritten by Ada")).to_contain_text("known since Monday")
    overview = open_page(f"{base}/")
    expect(overview.locator(".st-key-verdict-violated")).to_contain_text("Violated")
    undo = elsewhere.get_by_role("button", name="Undo")
    for _ in range(3):  # a click that meets the page being drawn anew can be lost
        undo.click()
        with contextlib.suppress(AssertionError):
            expect(undo).to_have_count(0, timeout=10_000)
            break
    expect(page.get_by_text("terminal-overwritten")).to_be_visible()


def test_the_tab_counts_what_nobody_has_acknowledged(open_page, serve, growing):
    base = serve(growing.url)
    page = open_page(f"{base}/")
    expect(page).to_have_title(re.compile(r"^\(\d+\) a2a-fencing$"))
    before = count(page)
    growing()
    expect(page).to_have_title(f"({2 * before}) a2a-fencing")
    other = open_page(f"{base}/alerts")
    for left in (1, 0):
        fill(other, "Acknowledge", "Ada", "seen")
        expect(page).to_have_title(f"({left * before}) a2a-fencing" if left else "a2a-fencing")


def test_a_page_in_which_somebody_writes_holds_still(open_page, serve, growing):
    page = open_page(f"{serve(growing.url)}/alerts")
    page.get_by_text("Mute", exact=True).last.click()
    reason = page.get_by_label("Reason")
    reason.fill("half a sen")
    growing()
    expect(page.locator(".st-key-live")).to_contain_text("held while you write, newer data waits")
    expect(reason).to_have_value("half a sen")
    expect(page.get_by_text("task-2")).to_have_count(0)
    page.keyboard.press("Escape")
    expect(page.get_by_text("task-2")).to_be_visible()


def count(page) -> int:
    return int(page.title().partition(")")[0].lstrip("("))


def fill(page, label: str, by: str, because: str) -> None:
    """Takes a note of the topmost task that has none."""
    alerts = page.locator("[class*=st-key-alert-]")
    alerts.locator("[data-testid=stPopoverButton]", has_text=label).first.click()
    page.get_by_label("Your name").fill(by)
    page.get_by_label("Reason").fill(because)
    page.locator("[data-testid=stForm]").get_by_role("button", name=label).click()
    expect(page.get_by_label("Reason")).to_have_count(0)


def hover_until_it_is_a_link(page, table, cell) -> None:
    """A table that is still being laid out does not notice a pointer that rests."""
    for nudge in range(200):
        table.hover(position={"x": cell["x"] + nudge % 2, "y": cell["y"]})
        if table.locator(".dvn-scroller").evaluate("e => getComputedStyle(e).cursor") == "pointer":
            return
        page.evaluate("() => new Promise(requestAnimationFrame)")
    pytest.fail("the cell is no link")
