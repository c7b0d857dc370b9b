"""A task as somebody names it who must not learn whose it is: a resource that was sent a fencing token.

Its facts name the task by id and *scope*, a digest of store and owner. Whoever also has facts of the
task's own replicas joins the two, in whatever order they come.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Final

from a2a_fencing import conventions as c
from a2a_fencing.facts import Fact, TaskKey

_PREFIX: Final = "scope:"
_SCOPE: Final = re.compile("[0-9a-f]{16}")


def scope_of(key: TaskKey) -> str:
    """Names the store and owner of a task to somebody who must not learn either."""
    return _scope(key.store, key.owner)


@lru_cache(1 << 12)
def _scope(store: str, owner: str) -> str:
    return digest(store, owner)[:16]


def is_scope(text: str) -> bool:
    """Whether a text can be a scope."""
    return _SCOPE.fullmatch(text) is not None


def digest(*parts: str) -> str:
    """A fixed-length name of these parts together."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def scoped(task_id: str, scope: str) -> TaskKey:
    """The key under which a resource tells of a task."""
    return TaskKey(_PREFIX + scope, "", task_id)


def is_scoped(key: TaskKey) -> bool:
    """Whether a key is a resource's."""
    return key.store.startswith(_PREFIX)


def scoped_from(key: TaskKey) -> TaskKey:
    """What a resource calls this task."""
    return scoped(key.task_id, key.store[len(_PREFIX) :] if is_scoped(key) else scope_of(key))


def joined(facts: Iterable[Fact], known: Iterable[TaskKey] = ()) -> list[Fact]:
    """The facts, those of resources under the keys of the tasks they are about, where these are known.

    Args:
        facts: Facts of replicas and of resources.
        known: Keys of tasks that are known besides.
    """
    facts = list(facts)
    ids = {name.task_id for name in scoped_in(facts)}
    if not ids:
        return facts
    own = {fact.task for fact in facts if fact.task is not None} | set(known)
    names = names_of(key for key in own if key.task_id in ids)
    return [_renamed(fact, names) for fact in facts]


def scoped_in(facts: Iterable[Fact]) -> set[TaskKey]:
    """The resources' keys among those of these facts; resources tell of dispatches alone."""
    keys = {fact.task for fact in facts if fact.kind == c.DISPATCH}
    return {key for key in keys if key is not None and is_scoped(key)}


def names_of(keys: Iterable[TaskKey]) -> dict[TaskKey, TaskKey]:
    """Tasks by what resources call them; of several incarnations the last."""
    ordered = sorted((key for key in keys if not is_scoped(key)), key=lambda key: key.incarnation)
    return {scoped_from(key): key for key in ordered}


def _renamed(fact: Fact, names: Mapping[TaskKey, TaskKey]) -> Fact:
    key = names.get(fact.task) if fact.task is not None else None
    return fact if key is None else replace(fact, task=key)
