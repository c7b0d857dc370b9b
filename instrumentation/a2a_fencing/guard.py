"""Enforcement: what is otherwise only observed is refused, on an SDK that does not refuse it itself.

Two rules, each of which can be on alone:

- *store*: no write replaces or changes a finished task, in any versioned store. The state of the base
  version is known here, and the store's own compare-and-swap makes sure that the base is still what is
  stored: there is no window between check and write, and no extra read. A store that keeps no versions
  gives no such hold and is not covered.
- *consumer*: once a reload has shown that the task is finished, what its executor still emits is
  dropped.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from operator import itemgetter

from a2a_fencing import recorder, sdk_rules

STORE = "store"
CONSUMER = "consumer"
RULES = (STORE, CONSUMER)

_BY_SDK = {STORE: " (of its own database store by the SDK)", CONSUMER: " (by the SDK)"}

_log = logging.getLogger("a2a_fencing")


@dataclass(frozen=True, slots=True)
class Guard:
    """What is enforced now.

    Attributes:
        store: Whether writes on finished tasks are refused here.
        consumer: Whether a stale executor's events are dropped here.
        by_sdk: Rules that were asked for and that this SDK enforces itself, so that nothing is done
            twice. Its store rule is that of its own database store; other stores are held here.
    """

    store: bool = False
    consumer: bool = False
    by_sdk: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.rules)

    @property
    def rules(self) -> tuple[str, ...]:
        """The rules that hold, whoever enforces them."""
        here = {STORE: self.store, CONSUMER: self.consumer}
        return tuple(rule for rule in RULES if here[rule] or rule in self.by_sdk)

    def __str__(self) -> str:
        shown = (f"{rule} rule{_BY_SDK[rule] if rule in self.by_sdk else ''}" for rule in self.rules)
        return ", ".join(shown) or "off: observing only"


OFF = Guard()
_active = [OFF]

in_force: Callable[[], Guard] = partial(itemgetter(0), _active)
"""What is enforced now. A call into C, as with each event it is asked."""


def enforce(guard: Guard) -> Guard:
    """Enforces `guard` from now on; returns what was enforced before."""
    previous, _active[0] = _active[0], guard
    return previous


def wanted(setting: bool | str) -> Guard:
    """What a setting asks for, less what this SDK does itself.

    Args:
        setting: True (both rules), False, ``"store"`` or ``"consumer"``.

    Raises:
        ValueError: It is none of these.
    """
    if setting is False:
        return OFF
    rules = RULES if setting is True else (setting,)
    if not set(rules) <= set(RULES):
        raise ValueError(f"expected true, false, {' or '.join(RULES)}, not {setting!r}")
    by_sdk = sdk_rules.enforced() & frozenset(rules)
    for rule in sorted(by_sdk):
        _log.info("this a2a-sdk enforces the guard's %s rule itself", rule)
    return Guard(
        store=STORE in rules,
        consumer=CONSUMER in rules and CONSUMER not in by_sdk,
        by_sdk=by_sdk,
    )


def guard(setting: bool | str | None = None) -> Guard:
    """Tells what is enforced now, or switches it while the server runs.

    Args:
        setting: True (both rules), False (observe only), ``"store"`` or ``"consumer"`` alone; None
            changes nothing.

    Returns:
        What is enforced from now on; true when anything is.

    Raises:
        ValueError: The setting is none of these.
        RuntimeError: Something is to be enforced and `instrument()` was not called.
    """
    if setting is None:
        return in_force()
    asked = wanted(setting)
    if asked and recorder.active() is None:
        raise RuntimeError("the guard works inside the hooks: call a2a_fencing.instrument() first")
    enforce(asked)
    return asked
