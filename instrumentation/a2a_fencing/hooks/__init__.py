"""One module per surface of the SDK, and the set of all of them."""

from __future__ import annotations

import logging
import weakref
from typing import Any

from a2a_fencing.hooks.consumer import ConsumerHooks
from a2a_fencing.hooks.dispatch_spans import DispatchSpans
from a2a_fencing.hooks.executor import ExecutorHooks
from a2a_fencing.hooks.handler import HandlerHooks
from a2a_fencing.hooks.legacy import LegacyHooks
from a2a_fencing.hooks.memory import TaskMemory
from a2a_fencing.hooks.patches import Patches
from a2a_fencing.hooks.push import PushHooks
from a2a_fencing.hooks.queue import QueueHooks
from a2a_fencing.hooks.sdk import VersionedTaskStore
from a2a_fencing.hooks.store import StoreHooks
from a2a_fencing.hooks.stores import StoreIdentities
from a2a_fencing.hooks.threads import ThreadHooks

_log = logging.getLogger("a2a_fencing")


class Hooks:
    """Every hook, installed together and taken off together.

    Args:
        process: Distinguishes this process's in-memory stores from those of others.
        audit: Re-read the stored state before each write.

    Attributes:
        missing: ``Class.method`` of each target that this SDK does not have.
    """

    def __init__(self, process: str, *, audit: bool = False) -> None:
        self._patches = Patches()
        memory = TaskMemory()
        self.stores = StoreHooks(memory, StoreIdentities(process), audit=audit)
        self.dispatch_spans = DispatchSpans()
        self.executors = ExecutorHooks(memory, self.dispatch_spans.watch_application)
        self._consumers = ConsumerHooks(self.stores)
        self._handlers = HandlerHooks(self.stores, memory)
        self._queues = QueueHooks(self.stores, self._adopt)
        self._legacy = LegacyHooks(self.stores)
        self._push = PushHooks()
        self._threads = ThreadHooks()
        self._adopted: weakref.WeakSet[type] = weakref.WeakSet()
        self.missing: list[str] = []

    def install(self) -> None:
        """Puts every hook in place; what this SDK lacks is reported, not fatal."""
        patches = self._patches
        self.missing = [] if VersionedTaskStore is not None else ["VersionedTaskStore"]
        self.executors.install(patches)
        self._push.install(patches)
        self._threads.install(patches)
        self.dispatch_spans.install(patches)
        for hooks in (self.stores, self._consumers, self._queues, self._handlers, self._legacy):
            self.missing += hooks.install(patches)
        if self.missing:
            _log.warning("this a2a-sdk has no %s; going on without", ", ".join(self.missing))

    def renew(self, process: str) -> None:
        """In a forked child: its copies of in-memory stores are stores of its own."""
        self.stores.renew(process)

    def remove(self) -> None:
        """Restores every patched attribute."""
        self._patches.undo()
        self._queues.remove()

    def _adopt(self, active_task: Any) -> None:
        """Hooks the classes of an executor and a store that derive from no SDK class."""
        executor, store = active_task._agent_executor, active_task._task_manager.task_store
        if type(executor) not in self._adopted:
            self._adopted.add(type(executor))
            self.executors.adopt(self._patches, executor)
        if type(store) not in self._adopted:
            self._adopted.add(type(store))
            self.stores.adopt(self._patches, store)
