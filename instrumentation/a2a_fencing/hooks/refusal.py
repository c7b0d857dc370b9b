"""Why a write was refused: one SDK exception has six causes, told apart by one read of the store.

Refusals are rare and a read is cheap. The first cause that fits is taken, in the order of
`conventions.CONFLICT_REASONS`; only ``stale-base`` means that somebody else wrote. Another owner is
never named.
"""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple

from a2a_fencing import conventions as c
from a2a_fencing import internal_errors
from a2a_fencing.facts import Version
from a2a_fencing.hooks.tasks import same_content, state_of, version_of


class Refusal(NamedTuple):
    """What a refused write comes to.

    Attributes:
        outcome: ``terminal-rejected`` or ``conflict``.
        reason: One of `conventions.CONFLICT_REASONS`.
        stored_version, stored_state: What the store holds instead; None when nothing is stored.
    """

    outcome: str
    reason: str
    stored_version: Version = None
    stored_state: str | None = None


class Attempt(NamedTuple):
    """The refused write.

    Attributes:
        store: The store object that refused.
        context: The caller's ServerCallContext.
        task: The task as it was to be stored.
        base: Version it was derived from, None for a first write.
        retried: Whether an earlier try of the same write may have been committed.
    """

    store: Any
    context: Any
    task: Any
    base: Version
    retried: bool


async def explain(attempt: Attempt) -> Refusal:
    """Reads the store once and says why it refused.

    Raises:
        asyncio.CancelledError: The host cancelled the caller meanwhile.
    """
    try:
        stored = await attempt.store.get(attempt.task.id, attempt.context)
        if stored is None:
            return Refusal(c.CONFLICT, await _why_nothing_is_stored(attempt))
        return _why_not_over(stored, attempt)
    except asyncio.CancelledError:
        raise
    except Exception as error:
        internal_errors.report("read after a refusal", error)
        return Refusal(c.CONFLICT, c.UNEXPLAINED)


def _why_not_over(stored: Any, attempt: Attempt) -> Refusal:
    task = getattr(stored, "task", stored)
    version = version_of(getattr(stored, "version", None))
    state = state_of(task)
    is_cancel = state_of(attempt.task) == c.CANCELED
    outcome = c.CONFLICT
    if attempt.retried and version != attempt.base and same_content(task, attempt.task):
        reason = c.OWN_COMMIT
    elif version != attempt.base and not is_cancel:
        reason = c.STALE_BASE
    elif state in c.TERMINAL_STATES:
        outcome, reason = c.TERMINAL_REJECTED, c.TERMINAL
    else:
        reason = c.UNEXPLAINED
    return Refusal(outcome, reason, version, state)


async def _why_nothing_is_stored(attempt: Attempt) -> str:
    if attempt.base is not None or state_of(attempt.task) == c.CANCELED:
        return c.ABSENT
    owner_of_version_row = await _version_row_owner(attempt.store, attempt.task.id)
    if owner_of_version_row is None:
        return c.UNEXPLAINED
    mine = attempt.store._db.owner_resolver(attempt.context)
    return c.ORPHAN_VERSION_ROW if owner_of_version_row == mine else c.FOREIGN_OWNER


async def _version_row_owner(store: Any, task_id: str) -> str | None:
    """Owner of the version row that stands in a first write's way; only the SDK's own store has one."""
    model = getattr(store, "_version_model", None)
    database = getattr(store, "_db", None)
    if model is None or database is None:
        return None
    from sqlalchemy import select

    async with database.async_session_maker() as session:
        owner = (
            await session.execute(select(model.owner).where(model.task_id == task_id))
        ).scalar_one_or_none()
    return owner if isinstance(owner, str) else None
