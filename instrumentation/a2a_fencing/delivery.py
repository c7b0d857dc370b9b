"""Posting to OTLP/HTTP endpoints: on until acknowledged, or refused for good."""

from __future__ import annotations

import enum
import logging
import random
import time
from collections.abc import Callable, Mapping
from typing import Any

import requests

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
        self._prepared: dict[str, tuple[requests.PreparedRequest, dict[str, Any]]] = {}
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
                response = self._post(url, body)
                if response.ok:
                    self._rejoice(url)
                    return Answer.TAKEN
                if response.status_code in _NO_SUCH_SIGNAL:
                    return Answer.NOT_SERVED
                problem = f"HTTP {response.status_code}"
                if response.status_code not in _TRANSIENT:
                    self._complain(url, problem)
                    return Answer.REFUSED
                retry_after = response.headers.get("Retry-After")
            except requests.RequestException as error:
                problem = type(error).__name__
            self._complain(url, problem)
            if self._closing:
                return Answer.REFUSED
            self._pause(retry_after)

    def _post(self, url: str, body: bytes) -> requests.Response:
        """One try. What is alike in all of them (address, headers, proxies and certificates of the
        environment) is worked out once: that is half of what a request costs.
        """
        known = self._prepared.get(url)
        if known is None:
            empty = self._session.prepare_request(requests.Request("POST", url, headers=self._headers))
            settings = self._session.merge_environment_settings(url, {}, None, None, None)
            known = self._prepared[url] = empty, settings
        empty, settings = known
        request = empty.copy()
        request.prepare_body(body, None)
        if self._session.cookies:  # of a load balancer that wants to see us again
            request.headers.pop("Cookie", None)
            request.prepare_cookies(self._session.cookies)
        return self._session.send(request, timeout=_TIMEOUT_S, **settings)

    def _pause(self, retry_after: str | None) -> None:
        """Exponential backoff with jitter, or as long as the receiver asked for."""
        self._failures += 1
        delay = min(_LONGEST_BACKOFF_S, 0.25 * 2**self._failures) * random.uniform(0.5, 1.0)
        if retry_after is not None and retry_after.isdigit():
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
