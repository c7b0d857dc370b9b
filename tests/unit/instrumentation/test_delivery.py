"""Requests of the outbox: what is worked out once, and what is not."""

from __future__ import annotations

import pytest
import requests
from requests.adapters import BaseAdapter

from a2a_fencing.delivery import Answer, Delivery

URL = "http://receiver/v1/logs"


class Recorded(BaseAdapter):
    """Takes every request."""

    def __init__(self) -> None:
        super().__init__()
        self.requests: list[requests.PreparedRequest] = []
        self.proxies: list[object] = []

    def send(self, request, **options):  # type: ignore[no-untyped-def, override]
        self.requests.append(request)
        self.proxies.append(options["proxies"])
        response = requests.Response()
        response.status_code = 200
        response.request = request
        return response

    def close(self) -> None:
        pass


@pytest.fixture
def recorded() -> tuple[Delivery, Recorded]:
    delivery, adapter = Delivery({"authorization": "Bearer x"}), Recorded()
    delivery._session.mount("http://", adapter)
    return delivery, adapter


def test_each_request_has_its_own_body_and_all_have_the_headers(recorded) -> None:
    delivery, adapter = recorded
    assert [delivery.send(URL, body) for body in (b"one", b"three")] == [Answer.TAKEN, Answer.TAKEN]
    assert [request.body for request in adapter.requests] == [b"one", b"three"]
    for request in adapter.requests:
        assert request.headers["authorization"] == "Bearer x"
        assert request.headers["Content-Type"] == "application/x-protobuf"
        assert request.headers["Content-Length"] == str(len(request.body))


def test_a_proxy_of_the_environment_is_used(recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    delivery, adapter = recorded
    monkeypatch.setenv("http_proxy", "http://proxy:3128")
    delivery.send(URL, b"x")
    assert adapter.proxies[0]["http"] == "http://proxy:3128"


def test_a_cookie_goes_back_to_who_set_it(recorded) -> None:
    delivery, adapter = recorded
    delivery.send(URL, b"x")
    delivery._session.cookies.set("node", "1", domain="receiver.local", path="/")
    delivery.send(URL, b"x")
    assert [request.headers.get("Cookie") for request in adapter.requests] == [None, "node=1"]
