"""Push notifications: what each webhook was told, and whether it was delivered."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

from opentelemetry import context as otel_context

from a2a_fencing import conventions as c
from a2a_fencing import internal_errors, recorder
from a2a_fencing.hooks import dispatch as dispatches
from a2a_fencing.hooks import scope as scopes
from a2a_fencing.hooks.dispatch import Dispatching
from a2a_fencing.hooks.leaving import detach
from a2a_fencing.hooks.patches import Patches
from a2a_fencing.hooks.sdk import PushNotificationSender
from a2a_fencing.hooks.tasks import event_kind, event_state
from a2a_fencing.recorder import Recorder

Method = Callable[..., Awaitable[Any]]

_DELIVER = "_dispatch_notification"
"""Where the SDK's own sender posts to one webhook and says whether that worked."""


@contextmanager
def _dispatching(rec: Recorder) -> Iterator[list[bool]]:
    """Makes a push a dispatch of the turn whose event it tells of; yields where to say if it arrived.

    What went wrong the SDK only logs, so a push that did not succeed may have arrived all the same,
    unless a traced HTTP client inside knows better.
    """
    said: list[bool] = []
    scope = scopes.current()
    turn = scope.turn if scope is not None else None
    if turn is None:
        yield said
        return
    dispatching = Dispatching(rec, turn, name=c.PUSH)
    dispatching.start()
    around = dispatches.inside(dispatching, scopes.inside(turn, otel_context.get_current()))
    token = otel_context.attach(around)
    try:
        yield said
    finally:
        detach(token)
        dispatching.end(c.ACCEPTED if said == [True] else None)


class PushHooks:
    """What happens around push notification senders, the SDK's and others."""

    def install(self, patches: Patches) -> None:
        """Hooks senders that exist and that come later."""
        patches.wrap_overrides(PushNotificationSender, "send_notification", self.send)
        patches.wrap_overrides(PushNotificationSender, _DELIVER, self.deliver)

    async def send(self, wrapped: Method, sender: Any, args: Any, kwargs: Any) -> Any:
        """Around a sender that says nothing of single webhooks; the SDK's is told by `deliver`."""
        rec = recorder.active()
        if rec is None or hasattr(sender, _DELIVER):
            return await wrapped(*args, **kwargs)
        event = args[1] if len(args) > 1 else kwargs.get("event")
        try:
            with _dispatching(rec) as said:
                result = await wrapped(*args, **kwargs)
                said.append(True)
        except Exception as error:
            self._told(rec, event, c.DISPATCH_FAILED, type(error).__qualname__)
            raise
        self._told(rec, event, c.ACCEPTED)
        return result

    async def deliver(self, wrapped: Method, sender: Any, args: Any, kwargs: Any) -> Any:
        """Around one webhook of the SDK's sender."""
        rec = recorder.active()
        if rec is None:
            return await wrapped(*args, **kwargs)
        with _dispatching(rec) as said:
            delivered = await wrapped(*args, **kwargs)
            said.append(delivered)
        event = args[0] if args else kwargs.get("event")
        self._told(rec, event, c.ACCEPTED if delivered else c.DISPATCH_FAILED)
        return delivered

    def _told(self, rec: Recorder, event: Any, outcome: str, error_type: str | None = None) -> None:
        try:
            scope = scopes.current()
            turn = scope.turn if scope is not None else None
            rec.record(
                c.ANSWER,
                turn.span if turn is not None else None,
                task=turn.key if turn is not None else None,
                writer=turn.writer if turn is not None else None,
                context_id=event.context_id or None,
                method=c.PUSH,
                event_kind=event_kind(event),
                state=event_state(event),
                outcome=outcome,
                error_type=error_type,
            )
        except Exception as error:
            internal_errors.report("a push notification", error)
