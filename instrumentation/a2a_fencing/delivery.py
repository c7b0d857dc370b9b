"""Posting to OTLP/HTTP endpoints: on until acknowledged, or refused for good."""

from __future__ import annotations

import enum
import logging
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import requests
from requests.adapters import HTTPAdapter
from requests.cookies import extract_cookies_to_jar
from requests.utils import select_proxy
from urllib3 import HTTPConnectionPool
from urllib3.exceptions import HTTPError

_TIMEOUT_S = 10.0
_LONGEST_BACKOFF_S = 30.0
_TRANSIENT = frozenset({408, 429, 500, 502, 503, 504})
_NO_SUCH_SIGNAL = frozenset({404, 405, 501})

_log = logging.getLogger("a2a_fencing")


class Answer(enum.Enum):
    """What became of a body."""

    TAKEN = enum.auto()
    REFUSED = enum.auto()
    NOT_SERVED = enum.auto()
    """The endpoint has no such signal (Jaeger takes traces only); nothing is wrong."""


class _Reply(NamedTuple):
    """What an endpoint answered."""

    status: int
    headers: Mapping[str, str]


@dataclass(slots=True)
class _Route:
    """What is alike in all requests to an address: headers, proxies, certificates of the environment.

    Attributes:
        request: Without a body.
        headers: Of it.
        settings: How requests sends it.
        pool: Connections to post over at once; None where each request needs all that requests does.
    """

    request: requests.PreparedRequest
    headers: dict[str, str]
    settings: dict[str, Any]
    pool: HTTPConnectionPool | None


class _Adapter(HTTPAdapter):
    """Tells which connections it would take."""

    def pool_for(
        self, request: requests.PreparedRequest, settings: Mapping[str, Any]
    ) -> HTTPConnectionPool | None:
        """Connections to where a request goes, or None when that is behind a proxy."""
        verify, proxies, cert = settings["verify"], settings["proxies"], settings["cert"]
        if select_proxy(request.url or "", proxies):
            return None
        pool = self.get_connection_with_tls_context(request, verify, proxies=proxies, cert=cert)
        self.cert_verify(pool, request.url or "", verify, cert)
        return pool


class Delivery:
    """Posts one body after the other.

    Args:
        headers: Sent with each request (an ingest token, say).
        on_trouble: Called with each try that failed.
    """

    def __init__(
        self, headers: Mapping[str, str], on_trouble: Callable[[], None] = lambda: None
    ) -> None:
        self._on_trouble = on_trouble
        self._headers = {"Content-Type": "application/x-protobuf", **headers}
        self._session = requests.Session()
        for scheme in ("http://", "https://"):
            self._session.mount(scheme, _Adapter())
        self._routes: dict[str, _Route] = {}
        self._complained = False
        self._failures = 0
        self._closing = False

    def hurry(self) -> None:
        """What fails from now on is not tried again."""
        self._closing = True

    def close(self) -> None:
        """Gives the connections back."""
        self._session.close()

    def send(self, url: str, body: bytes) -> Answer:
        """Posts until the body is acknowledged or refused for good."""
        self._failures = 0
        while True:
            retry_after = None
            try:
                reply = self._post(url, body)
                if reply.status < 400:
                    self._rejoice(url)
                    return Answer.TAKEN
                if reply.status in _NO_SUCH_SIGNAL:
                    return Answer.NOT_SERVED
                problem = f"HTTP {reply.status}"
                if reply.status not in _TRANSIENT:
                    self._complain(url, problem)
                    return Answer.REFUSED
                retry_after = reply.headers.get("Retry-After")
            except (OSError, HTTPError, ValueError) as error:
                problem = type(error).__name__
            self._complain(url, problem)
            if self._closing:
                return Answer.REFUSED
            self._pause(retry_after)

    def _post(self, url: str, body: bytes) -> _Reply:
        """One try, past what requests does around each request, which is most of what one costs.

        Behind a proxy, after a redirect or for who sets cookies (a load balancer), that is needed.
        """
        route = self._routes.get(url)
        if route is None:
            route = self._routes[url] = self._route(url)
        if route.pool is None or self._session.cookies:
            return self._post_fully(route, body)
        response = route.pool.urlopen(
            "POST",
            route.request.path_url,
            body=body,
            headers=route.headers,
            retries=False,
            redirect=False,
            timeout=_TIMEOUT_S,
        )
        extract_cookies_to_jar(self._session.cookies, route.request, response)
        if response.get_redirect_location():
            route.pool = None
            return self._post_fully(route, body)
        return _Reply(response.status, response.headers)

    def _route(self, url: str) -> _Route:
        request = self._session.prepare_request(requests.Request("POST", url, headers=self._headers))
        request.headers.pop("Content-Length", None)
        headers = {name: str(value) for name, value in request.headers.items()}
        settings = self._session.merge_environment_settings(url, {}, None, None, None)
        adapter = self._session.get_adapter(url)
        pool = adapter.pool_for(request, settings) if isinstance(adapter, _Adapter) else None
        return _Route(request, headers, settings, pool)

    def _post_fully(self, route: _Route, body: bytes) -> _Reply:
        request = route.request.copy()
        request.prepare_body(body, None)
        if self._session.cookies:
            request.headers.pop("Cookie", None)
            request.prepare_cookies(self._session.cookies)
        response = self._session.send(request, timeout=_TIMEOUT_S, **route.settings)
        return _Reply(response.status_code, response.headers)

    def _pause(self, retry_after: str | None) -> None:
        """Exponential backoff with jitter, or as long as the receiver asked for."""
        self._failures += 1
        delay = min(_LONGEST_BACKOFF_S, 0.25 * 2**self._failures) * random.uniform(0.5, 1.0)
        if retry_after is not None and retry_after.isdecimal():
            delay = min(_LONGEST_BACKOFF_S, float(retry_after))
        deadline = time.monotonic() + delay
        while not self._closing and (left := deadline - time.monotonic()) > 0:
            time.sleep(min(left, 0.1))

    def _complain(self, url: str, problem: str) -> None:
        self._on_trouble()
        if not self._complained:
            self._complained = True
            _log.warning(
                "facts wait: %s does not take them (%s); trying on in the background", url, problem
            )

    def _rejoice(self, url: str) -> None:
        if self._complained:
            self._complained = False
            _log.warning("%s takes facts again", url)
