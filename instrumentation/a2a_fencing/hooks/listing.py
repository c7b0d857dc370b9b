"""Which tasks in the pages of ListTasks tell a client something that it was not told before.

Clients page and poll: the same finished task would be an answer again and again. Its state and when it
got it are remembered for the tasks listed last, and told once.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from a2a_fencing import conventions as c
from a2a_fencing.facts import TaskKey
from a2a_fencing.hooks.tasks import state_of

_TASKS = 8192


class Listed:
    """What has been told by lists, bounded.

    Args:
        tasks: How many tasks to remember.
    """

    def __init__(self, tasks: int = _TASKS) -> None:
        self._limit = tasks
        self._told: OrderedDict[TaskKey, tuple[str, int]] = OrderedDict()

    def is_news(self, key: TaskKey, task: Any) -> bool:
        """Whether this task is finished and no list has shown it so."""
        state = state_of(task)
        if state not in c.TERMINAL_STATES:
            return False
        told = (state, task.status.timestamp.ToNanoseconds())
        if self._told.get(key) == told:
            self._told.move_to_end(key)
            return False
        self._told[key] = told
        if len(self._told) > self._limit:
            self._told.popitem(last=False)
        return True
