"""Which store a store object is: the same name on every replica that shares it, without secrets.

Stores are wrapped in adapters and proxies; the innermost one decides, because it is the one that keeps
the tasks.
"""

from __future__ import annotations

import itertools
import os
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from a2a.server.owner_resolver import resolve_user_scope

from a2a_fencing import internal_errors
from a2a_fencing.hooks.sdk import LegacyTaskStoreAdapter, VersionedTaskStore

_INNER = ("_db", "_store", "_impl", "store", "_underlying_store", "_inner", "_wrapped", "__wrapped__")
_LOCAL_HOSTS = frozenset({"", "localhost", "127.0.0.1", "::1"})
_DEFAULT_PORTS = {"postgresql": 5432, "mysql": 3306, "mariadb": 3306, "mssql": 1433, "oracle": 1521}

_MAX_LAYERS = 16
"""Ends the walk at a proxy that answers every name, such as a mock."""

_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class StoreIdentity:
    """How facts name a store.

    Attributes:
        name: Shared by all store objects over the same rows.
        number: Tells apart the store objects of one process; the seam of `Fact.writer`.
        owner_of: The store's own owner resolver.
    """

    name: str
    number: int
    owner_of: Callable[[Any], str]


class StoreIdentities:
    """Identities of store objects, worked out once per object.

    Args:
        process: Distinguishes memory of this process from that of others.
    """

    def __init__(self, process: str) -> None:
        self._process = process
        self._known: weakref.WeakKeyDictionary[Any, StoreIdentity] = weakref.WeakKeyDictionary()
        self._numbers: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()

    def renew(self, process: str) -> None:
        """Names stores anew for a forked child."""
        self._process = process
        self._known.clear()

    def of(self, store: Any) -> StoreIdentity:
        """The identity of a store, adapter or proxy."""
        try:
            identity = self._known.get(store)
        except TypeError:  # not hashable or not weakly referable
            return self._work_out(store)
        if identity is None:
            identity = self._known[store] = self._work_out(store)
        return identity

    def _work_out(self, store: Any) -> StoreIdentity:
        innermost = _innermost(store)
        owner_of = getattr(innermost, "owner_resolver", None) or resolve_user_scope
        number = self._number(innermost)
        try:
            name = self._name(innermost, number)
        except Exception as error:
            internal_errors.report("store identity", error)
            name = self._memory(number)
        return StoreIdentity(name, number, owner_of)

    def _name(self, store: Any, number: int) -> str:
        engine = getattr(store, "engine", None)
        if engine is not None and hasattr(engine, "url"):
            table = getattr(getattr(store, "task_model", None), "__tablename__", "tasks")
            url = _database(engine.url)
            return f"{url or self._memory(self._number(engine))}#{table}"
        client = getattr(store, "redis", None) or getattr(store, "_redis", None)
        if client is not None:
            return f"{_redis(client)}#{getattr(store, 'prefix', '')}"
        return self._memory(number)

    def _memory(self, number: int) -> str:
        return f"memory:{self._process}/{number}"

    def _number(self, thing: Any) -> int:
        try:
            number = self._numbers.get(thing)
            if number is None:
                number = self._numbers[thing] = next(_numbers)
        except TypeError:
            return next(_numbers)
        return number


def is_versioned(store: Any) -> bool:
    """Whether the store orders writes by a version, so that a stale one can be told."""
    return (
        VersionedTaskStore is not None
        and isinstance(store, VersionedTaskStore)
        and not isinstance(store, LegacyTaskStoreAdapter)
    )


def _innermost(store: Any) -> Any:
    for _ in range(_MAX_LAYERS):
        inner = next(
            (
                found
                for name in _INNER
                if (found := getattr(store, name, None)) is not None and hasattr(found, "save")
            ),
            None,
        )
        if inner is None:
            break
        store = inner
    return store


def _database(url: Any) -> str | None:
    """An engine's URL without driver, user, password and options; None for a database in memory."""
    backend = url.get_backend_name()
    if backend == "sqlite":
        if not url.database or url.database == ":memory:" or "mode=memory" in url.database:
            return None
        return f"sqlite:///{os.path.realpath(url.database)}"
    host = (url.host or "").lower()
    host = "localhost" if host in _LOCAL_HOSTS else host
    port = url.port or _DEFAULT_PORTS.get(backend, 0)
    return f"{backend}://{host}:{port}/{url.database or ''}"


def _redis(client: Any) -> str:
    options = getattr(getattr(client, "connection_pool", None), "connection_kwargs", {})
    host = str(options.get("host", "localhost")).lower()
    host = "localhost" if host in _LOCAL_HOSTS else host
    return f"redis://{host}:{options.get('port', 6379)}/{options.get('db', 0)}"
