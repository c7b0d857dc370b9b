"""One message to one endpoint: tried until it is taken, refused or given up."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import httpx
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, wait_random_exponential

from a2a_fencing_dashboard.alerts.settings import place

_log = logging.getLogger(__name__)

WEBHOOK: Final = "webhook"
ALERTMANAGER: Final = "alertmanager"
DESTINATIONS: Final = (WEBHOOK, ALERTMANAGER)

DELIVERED: Final = "delivered"
REFUSED: Final = "refused"
"""The endpoint does not want this message, and never will."""
RETRIED: Final = "retried"
"""An attempt failed, and another follows."""
ABANDONED: Final = "abandoned"
"""The endpoint answered too often that it cannot take this message now."""
OUTCOMES: Final = (DELIVERED, REFUSED, RETRIED, ABANDONED)

Tallies = Counter[tuple[str, str]]
"""How many messages, by destination and outcome."""

Sleep = Callable[[float], Awaitable[None]]

_BUSY: Final = frozenset({408, 425, 429})
_LONGEST_WAIT_S: Final = 60.0
_backoff: Final = wait_random_exponential(multiplier=1.0, max=_LONGEST_WAIT_S)


class _RefusedError(Exception):
    """The endpoint does not want this message."""


class _BusyError(Exception):
    """The endpoint asks to try again, perhaps not before so many seconds have passed."""

    def __init__(self, status: int, retry_after: str) -> None:
        super().__init__(f"answers {status}")
        self.wait_s = min(float(retry_after), _LONGEST_WAIT_S) if retry_after.isdecimal() else 0.0


class Endpoint:
    """A URL that messages are posted to. What goes wrong is counted, and said once until it works."""

    def __init__(
        self,
        kind: str,
        url: str,
        client: httpx.AsyncClient,
        tallies: Tallies,
        *,
        attempts: int,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        """Posts to `url` over `client` and counts as `kind`; `sleep` waits between two attempts."""
        self._kind = kind
        self._url = url
        self._client = client
        self._tallies = tallies
        self._attempts = attempts
        self._sleep = sleep
        self._failing = False

    @property
    def shown(self) -> str:
        """What and where it is."""
        return f"{self._kind} at {place(self._url)}"

    async def deliver(
        self, make: Callable[[], Awaitable[bytes]], headers: Callable[[bytes], Mapping[str, str]]
    ) -> bool:
        """Posts what `make` gives, made anew for each attempt; returns whether it was taken.

        An endpoint that cannot be reached is tried for ever, one that answers a limited number of times.
        """
        attempts = AsyncRetrying(
            retry=retry_if_exception_type((httpx.TransportError, _BusyError)),
            stop=self._is_enough,
            wait=_pause,
            sleep=self._sleep,
            before_sleep=self._fail,
            reraise=True,
        )
        try:
            await attempts(self._post, make, headers)
        except _BusyError as error:
            self._give_up(ABANDONED, error)
            return False
        except (_RefusedError, httpx.HTTPError, httpx.InvalidURL) as error:
            self._give_up(REFUSED, error)
            return False
        self._tallies[self._kind, DELIVERED] += 1
        if self._failing:
            _log.warning("%s takes alerts again", self.shown)
        self._failing = False
        return True

    async def _post(
        self, make: Callable[[], Awaitable[bytes]], headers: Callable[[bytes], Mapping[str, str]]
    ) -> None:
        body = await make()
        everything = {"content-type": "application/json", **headers(body)}
        # The answer's body is nobody's: it is not read. Where it redirects to, nobody has agreed to.
        async with self._client.stream(
            "POST", self._url, content=body, headers=everything, follow_redirects=False
        ) as response:
            status, retry_after = response.status_code, response.headers.get("retry-after", "")
        if status in _BUSY or status >= 500:
            raise _BusyError(status, retry_after)
        if not 200 <= status < 300:
            raise _RefusedError(f"answers {status}")

    def _is_enough(self, state: RetryCallState) -> bool:
        return isinstance(_error(state), _BusyError) and state.attempt_number >= self._attempts

    def _fail(self, state: RetryCallState) -> None:
        error = _error(state)
        self._tallies[self._kind, RETRIED] += 1
        self._say("cannot be told of alerts: %s; until it can this is counted, not logged", error)

    def _give_up(self, outcome: str, error: Exception) -> None:
        self._tallies[self._kind, outcome] += 1
        self._say("was not told of alerts and will not be: %s; more of these are counted", error)

    def _say(self, what: str, error: BaseException | None) -> None:
        if not self._failing:
            _log.warning(f"%s {what}", self.shown, str(error) or type(error).__name__)
        self._failing = True


def _error(state: RetryCallState) -> BaseException | None:
    return state.outcome.exception() if state.outcome is not None else None


def _pause(state: RetryCallState) -> float:
    """Seconds until the next attempt: longer each time, not the same for all, and what was asked for."""
    error = _error(state)
    asked = error.wait_s if isinstance(error, _BusyError) else 0.0
    return max(asked, _backoff(state))
