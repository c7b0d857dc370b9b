"""Taking the right to act away from whoever has it: what a canceller or sweeper tells a resource."""

from __future__ import annotations

from typing import Any

from a2a_fencing.facts import TaskKey
from a2a_fencing.fencing.token import FencingToken
from a2a_fencing.hooks.stores import StoreIdentities


def taken_over(store: Any, context: Any, task_id: str, version: Any) -> FencingToken:
    """The token that fences everybody off who began before a write of yours.

    Send it to the resource (`Fence.advance`, or the middleware's ``advance_path``) once the store has
    accepted the write by which the right to act moved on.

    Args:
        store: The task store, over the database that the replicas share.
        context: The ServerCallContext of the write, which says whose task it is.
        task_id: A2A task id.
        version: The TaskVersion that ``save`` returned.

    Raises:
        ValueError: The store is in this process's memory, or its versions are not whole numbers.
    """
    identity = StoreIdentities("").of(store)
    if identity.name.startswith("memory:"):
        raise ValueError("a store in one process's memory has no replica to take a task over from")
    value = getattr(version, "_value", version)
    if not isinstance(value, int) or value < 1:
        raise ValueError(f"{version!r} is no version to take a fencing token from")
    return FencingToken.after(TaskKey(identity.name, identity.owner_of(context), task_id), value)
