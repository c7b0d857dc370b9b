"""What can be set: keywords of ``instrument()``, each also an environment variable."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from a2a_fencing.guard import RULES
from a2a_fencing.heartbeat import DEFAULT_INTERVAL_S

_PREFIX = "A2A_FENCING_"
_TRUE = frozenset({"1", "true", "yes", "on"})
_FALSE = frozenset({"0", "false", "no", "off", ""})
_LONGEST_INTERVAL_S = 1_000_000_000
_GUARDS = f"expected true, false, {' or '.join(RULES)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Settings of one instrumentation.

    Attributes:
        endpoint: OTLP/HTTP base URL that facts go to besides the application's own pipeline.
        run: Label of a load-test run.
        guard: Enforce instead of only observing: True, or one rule alone, ``"store"`` or
            ``"consumer"``.
        audit: Re-read the stored state before each write.
        heartbeat_interval: Seconds between heartbeats.
        sql_spans: SQL spans under write spans. None: where the application traces anyway, because they
            cost more than everything else here.
        token_secret: What fencing tokens are signed with, for resources that ask for it.
    """

    endpoint: str | None = None
    run: str | None = None
    guard: bool | str = False
    audit: bool = False
    heartbeat_interval: float = DEFAULT_INTERVAL_S
    sql_spans: bool | None = None
    token_secret: str | None = None

    @classmethod
    def resolve(cls, given: dict[str, Any]) -> Options:
        """Keywords first, then the environment, then the defaults.

        Raises:
            TypeError: There is no such keyword.
            ValueError: A value cannot be understood; the text names the setting.
        """
        unknown = given.keys() - _PARSERS.keys()
        if unknown:
            raise TypeError(f"instrument() has no keyword {sorted(unknown)[0]!r}")
        values = {name: value for name, value in given.items() if value is not None}
        for name, parse in _PARSERS.items():
            text = os.environ.get(_PREFIX + name.upper())
            if name not in values and text is not None:
                try:
                    values[name] = parse(text)
                except ValueError as error:
                    raise ValueError(f"{_PREFIX}{name.upper()}={text!r}: {error}") from None
        options = cls(**values)
        if not 0 < options.heartbeat_interval <= _LONGEST_INTERVAL_S:
            raise ValueError(
                f"heartbeat_interval must be more than 0 and at most {_LONGEST_INTERVAL_S} seconds"
            )
        if isinstance(options.guard, str) and options.guard not in RULES:
            raise ValueError(f"guard={options.guard!r}: {_GUARDS}")
        return options


def _flag(text: str) -> bool:
    lowered = text.strip().lower()
    if lowered in _TRUE:
        return True
    if lowered in _FALSE:
        return False
    raise ValueError("expected true or false")


def _guard(text: str) -> bool | str:
    rule = text.strip().lower()
    if rule in RULES:
        return rule
    try:
        return _flag(text)
    except ValueError:
        raise ValueError(_GUARDS) from None


def _seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError("expected a number of seconds") from None


_PARSERS: dict[str, Callable[[str], Any]] = {
    "endpoint": str,
    "run": str,
    "guard": _guard,
    "audit": _flag,
    "heartbeat_interval": _seconds,
    "sql_spans": _flag,
    "token_secret": str,
}
