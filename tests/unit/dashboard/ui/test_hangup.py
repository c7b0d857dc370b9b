from __future__ import annotations

import logging

import pytest

from a2a_fencing_dashboard.ui.hangup import QuietHangup


async def run(app, kind="websocket"):
    """Runs an app behind the middleware, its other side being gone at once."""
    sent = []

    async def receive():
        return {"type": "websocket.disconnect"}

    async def send(message):
        sent.append(message)

    await QuietHangup(app)({"type": kind}, receive, send)
    return sent


async def test_what_follows_a_close_is_no_fault(caplog):
    async def app(scope, receive, send):
        await send({"type": "websocket.close"})
        raise RuntimeError("cannot send")

    caplog.set_level(logging.DEBUG)
    assert await run(app) == [{"type": "websocket.close"}]
    assert [record.levelname for record in caplog.records] == ["DEBUG"]


async def test_nor_is_what_follows_a_browser_that_left():
    async def app(scope, receive, send):
        await receive()
        raise RuntimeError("cannot send")

    assert await run(app) == []


@pytest.mark.parametrize("error", [RuntimeError, ValueError])
async def test_a_fault_while_the_connection_is_open_stays_one(error):
    async def app(scope, receive, send):
        await send({"type": "websocket.accept"})
        raise error("a fault")

    with pytest.raises(error, match="a fault"):
        await run(app)


async def test_another_error_after_the_close_stays_one():
    async def app(scope, receive, send):
        await send({"type": "websocket.close"})
        raise ValueError("a fault")

    with pytest.raises(ValueError, match="a fault"):
        await run(app)


async def test_requests_pass_untouched():
    async def app(scope, receive, send):
        raise RuntimeError("a fault")

    with pytest.raises(RuntimeError, match="a fault"):
        await run(app, "http")
