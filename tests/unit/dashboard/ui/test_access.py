"""The token in front of everything the dashboard serves."""

from __future__ import annotations

import httpx
import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.routing import Route, WebSocketRoute

from a2a_fencing_dashboard.ui.access import TokenGate

TOKEN = "s3cret token/ü"


async def page(request):
    return PlainTextResponse("the page")


async def stream(websocket):
    await websocket.accept()


@pytest.fixture
def app():
    return Starlette(
        routes=[
            Route("/task", page),
            Route("/_stcore/health", page),
            WebSocketRoute("/_stcore/stream", stream),
        ],
        middleware=[Middleware(TokenGate, token=TOKEN)],
    )


@pytest.fixture
async def client(app):
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://here") as client:
        yield client


@pytest.mark.parametrize("query", [{}, {"token": ""}, {"token": "wrong"}, {"token": TOKEN + "x"}])
async def test_without_the_token_nothing_is_shown(client, query):
    answer = await client.get("/task", params=query)
    assert answer.status_code == 401
    assert "the page" not in answer.text
    assert "set-cookie" not in answer.headers


async def test_the_token_is_swapped_for_a_cookie_and_leaves_the_url(client):
    answer = await client.get("/task", params={"task": "t 1", "token": TOKEN})
    assert answer.status_code == 303
    assert answer.headers["location"] == "/task?task=t+1"
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    assert "s3cret" not in cookie
    assert (await client.get(answer.headers["location"])).text == "the page"


@pytest.mark.parametrize("path", ["/task", "//evil.example/task"])
async def test_a_redirect_stays_on_this_server(client, path):
    url = httpx.URL("http://here").copy_with(raw_path=f"{path}?token=s3cret%20token%2F%C3%BC".encode())
    answer = await client.get(url, headers={"host": "evil.example"})
    assert answer.status_code == 303
    location = answer.headers["location"]
    assert location.startswith("/")
    assert not location.startswith("//")


async def test_a_forged_cookie_opens_nothing(client):
    client.cookies.set("a2a_fencing_access", "0" * 64)
    assert (await client.get("/task")).status_code == 401


async def connect(app, cookie):
    """What the server answers to a websocket."""
    sent = []

    async def receive():
        return {"type": "websocket.connect"}

    async def send(message):
        sent.append(message["type"])

    headers = [(b"cookie", cookie.encode())] if cookie else []
    scope = {
        "type": "websocket",
        "path": "/_stcore/stream",
        "raw_path": b"/_stcore/stream",
        "root_path": "",
        "query_string": b"",
        "headers": headers,
        "subprotocols": [],
        "scheme": "ws",
        "server": ("here", 80),
    }
    await app(scope, receive, send)
    return sent[0]


async def test_the_stream_of_data_is_guarded_too(app, client):
    assert await connect(app, None) == "websocket.close"
    assert await connect(app, "a2a_fencing_access=forged") == "websocket.close"
    answer = await client.get("/task", params={"token": TOKEN})
    cookie = answer.headers["set-cookie"].partition(";")[0]
    assert await connect(app, cookie) == "websocket.accept"


async def test_health_can_be_asked_by_anybody(client):
    assert (await client.get("/_stcore/health")).status_code == 200
