"""The fence of a resource: lets a request through unless its sender lost the right to act."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from opentelemetry import trace

from a2a_fencing import conventions as c
from a2a_fencing import recorder
from a2a_fencing.fencing.errors import (
    FenceError,
    FenceUnavailableError,
    ForeignTokenError,
    MissingTokenError,
    SupersededTokenError,
)
from a2a_fencing.fencing.highest import HighestTokens
from a2a_fencing.fencing.token import TOKEN_HEADER, FencingToken, find
from a2a_fencing.hooks.dispatch_outcome import http_outcome

_log = logging.getLogger("a2a_fencing")


class Fence:
    """Decides about requests by the fencing token they carry.

    A request is let through when nobody was let through, and nobody advanced, with a higher token for
    the same task. What the fence decides is recorded as a dispatch fact of that task where this process
    is instrumented.

    Args:
        tokens: Where the highest tokens are remembered.
        secret: What tokens must be signed with (``A2A_FENCING_TOKEN_SECRET`` of the agents). Without
            it anybody who can send a request can also make up a token.
        name: What the resource is called in facts.
        required: Whether a request without a token is refused.
    """

    def __init__(
        self,
        tokens: HighestTokens,
        *,
        secret: str | None = None,
        name: str = "resource",
        required: bool = True,
    ) -> None:
        self._tokens = tokens
        self._secret = secret
        self._name = name
        self._required = required

    def admit(self, headers: Mapping[str, str], *, task_id: str | None = None) -> FencingToken | None:
        """Lets the request through, or raises.

        Args:
            headers: The request's headers.
            task_id: The task the request is about, when the resource knows.

        Returns:
            The token, or None where none is required and none came.

        Raises:
            FenceError: It must not take effect; ``status`` says how to answer.
        """
        token = self._read(headers, task_id)
        if token is not None:
            self._decide(token, self._asked(token))
            self._record(token, c.ACCEPTED, reason=c.ADMITTED)
        return token

    async def admit_async(
        self, headers: Mapping[str, str], *, task_id: str | None = None
    ) -> FencingToken | None:
        """The same without blocking the event loop."""
        token = await self.examine(headers, task_id=task_id)
        if token is not None:
            self._record(token, c.ACCEPTED, reason=c.ADMITTED)
        return token

    async def examine(
        self, headers: Mapping[str, str], *, task_id: str | None = None
    ) -> FencingToken | None:
        """The same for who says with `answered` what came of the request; only refusals are recorded."""
        token = self._read(headers, task_id)
        if token is None:
            return None
        try:
            highest = await self._tokens.raise_to_async(token)
        except FenceUnavailableError as error:
            self._unavailable(token, error)
            raise
        self._decide(token, highest)
        return token

    def answered(self, token: FencingToken, status: int | None, *, replayed: bool = False) -> None:
        """Records what came of a request that was let through.

        Args:
            token: What it carried.
            status: HTTP status of the answer; None: there was none.
            replayed: Whether the answer is that of an earlier request with the same idempotency key,
                and nothing was done this time.
        """
        outcome = c.UNKNOWN if status is None else http_outcome(status)
        self._record(token, outcome, reason=c.REPLAYED if replayed else None)

    def advance(self, token: FencingToken) -> None:
        """Takes the right to act away from everybody with a lower token, though nobody calls.

        Raises:
            FenceUnavailableError: It could not be remembered: they still have it.
        """
        self._tokens.raise_to(token)

    async def advance_async(self, token: FencingToken) -> None:
        """The same without blocking the event loop."""
        await self._tokens.raise_to_async(token)

    def _read(self, headers: Mapping[str, str], task_id: str | None) -> FencingToken | None:
        text = find(headers, TOKEN_HEADER)
        if text is None:
            if self._required:
                raise MissingTokenError(f"this resource asks for {TOKEN_HEADER}")
            return None
        token = FencingToken.from_header(text, self._secret)
        if task_id is not None and token.task_id != task_id:
            self._record(token, c.DISPATCH_REJECTED, ForeignTokenError)
            raise ForeignTokenError(
                f"the fencing token is task {token.task_id!r}'s, the request is about task {task_id!r}"
            )
        return token

    def _asked(self, token: FencingToken) -> int:
        try:
            return self._tokens.raise_to(token)
        except FenceUnavailableError as error:
            self._unavailable(token, error)
            raise

    def _decide(self, token: FencingToken, highest: int) -> None:
        if highest > token.value:
            self._record(token, c.DISPATCH_REJECTED, SupersededTokenError)
            raise SupersededTokenError(
                f"fencing token {token.value} of task {token.task_id!r} is superseded by {highest}:"
                " somebody else has finished the task or acts on it now",
                token=token.value,
                highest=highest,
            )

    def _unavailable(self, token: FencingToken, error: FenceUnavailableError) -> None:
        _log.error("%s: %s", self._name, error, exc_info=error.__cause__)
        self._record(token, c.DISPATCH_REJECTED, FenceUnavailableError)

    def _record(
        self,
        token: FencingToken,
        outcome: str,
        why: type[FenceError] | None = None,
        *,
        reason: str | None = None,
    ) -> None:
        rec = recorder.active()
        if rec is None:
            return
        # The request's own span is the resource's, not ours to write on; its ids are enough.
        context = trace.get_current_span().get_span_context()
        ids = (
            {"trace_id": f"{context.trace_id:032x}", "span_id": f"{context.span_id:016x}"}
            if context.is_valid
            else {}
        )
        named = {"dispatch_id": token.dispatch_id} if token.dispatch_id is not None else {}
        rec.record(
            c.DISPATCH,
            None,
            task=token.task,
            origin=c.FROM_RESOURCE,
            phase=c.ENDED,
            name=self._name,
            attempt=token.attempt,
            token=token.value,
            outcome=outcome,
            reason=reason,
            error_type=why.__name__ if why is not None else None,
            **named,
            **ids,
        )
