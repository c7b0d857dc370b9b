"""Requests of the outbox: what is worked out once, and what is not."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager

import pytest
import requests
from requests.adapters import BaseAdapter

from a2a_fencing.delivery import Answer, Delivery
from support.otlp_sink import Sink, otlp_sink

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


def endpoint(answers: Mapping[str, tuple[int, dict[str, str]]]) -> AbstractContextManager[Sink]:
    """A real one, which takes what it has no other answer for."""
    return otlp_sink(lambda path, before: answers.get(path, (200, {})))


def sent(url: str, *bodies: bytes) -> list[Answer]:
    delivery = Delivery({"authorization": "Bearer x"})
    try:
        return [delivery.send(url, body) for body in bodies]
    finally:
        delivery.close()


def test_a_real_endpoint_gets_each_body_with_its_length_and_the_headers() -> None:
    with endpoint({}) as sink:
        assert sent(f"{sink.url}/v1/logs?a=b", b"one", b"three") == [Answer.TAKEN] * 2
    assert [(path, body) for path, _, body, _ in sink.requests] == [
        ("/v1/logs?a=b", b"one"),
        ("/v1/logs?a=b", b"three"),
    ]
    for _, headers, body, _ in sink.requests:
        assert headers["authorization"] == "Bearer x"
        assert headers["Content-Type"] == "application/x-protobuf"
        assert headers["Content-Length"] == str(len(body))


def test_a_redirect_is_followed_with_the_body() -> None:
    with endpoint({"/old": (307, {"Location": "/v1/logs"})}) as sink:
        assert sent(f"{sink.url}/old", b"one", b"two") == [Answer.TAKEN] * 2
    assert [body for path, _, body, _ in sink.requests if path == "/v1/logs"] == [b"one", b"two"]


def test_who_sets_cookies_gets_them_back() -> None:
    with endpoint({"/v1/logs": (200, {"Set-Cookie": "node=1; Path=/"})}) as sink:
        assert sent(f"{sink.url}/v1/logs", b"one", b"two", b"three") == [Answer.TAKEN] * 3
    assert [headers.get("Cookie") for _, headers, _, _ in sink.requests] == [None, "node=1", "node=1"]


@pytest.mark.parametrize(
    ("status", "answer"),
    [(400, Answer.REFUSED), (401, Answer.REFUSED), (404, Answer.NOT_SERVED), (405, Answer.NOT_SERVED)],
)
def test_what_an_endpoint_says_decides(status: int, answer: Answer) -> None:
    with endpoint({"/v1/logs": (status, {})}) as sink:
        assert sent(f"{sink.url}/v1/logs", b"one") == [answer]


def test_who_is_not_there_or_hangs_up_is_tried_again_until_there_is_no_time() -> None:
    with endpoint({}) as sink:
        pass
    troubles: list[None] = []
    delivery = Delivery({}, lambda: troubles.append(None))
    delivery.hurry()
    assert delivery.send(f"{sink.url}/v1/logs", b"one") is Answer.REFUSED
    assert len(troubles) == 1


def test_a_certificate_is_checked_as_requests_does(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        monkeypatch.delenv(variable, raising=False)
    pool = Delivery({})._route("https://receiver/v1/logs").pool
    assert (pool.cert_reqs, pool.ca_certs) == ("CERT_REQUIRED", requests.certs.where())


def test_an_address_that_is_none_is_tried_on_like_one_that_does_not_answer() -> None:
    delivery = Delivery({})
    delivery.hurry()
    with endpoint({"/v1/logs": (307, {"Location": "http://[bad/"})}) as sink:
        assert delivery.send(f"{sink.url}/v1/logs", b"one") is Answer.REFUSED
