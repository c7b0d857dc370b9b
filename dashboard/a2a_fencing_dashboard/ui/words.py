"""The words a person reads: counts, times, names, and what rules and reasons mean.

What comes from a task or a replica is *text from outside*. It passes `shown` before it is displayed, and
pages hand the result only to elements that do not interpret it.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timezone
from typing import Final
from zoneinfo import ZoneInfo

from a2a_fencing import conventions as c
from a2a_fencing.facts import Version
from a2a_fencing_dashboard.store.protocol import ReplicaRow

Names = Mapping[str, str]
"""Replica (service instance id) -> what a person calls it."""

RULE_MEANINGS: Final[Mapping[str, str]] = {
    c.TERMINAL_OVERWRITTEN: "a finished task was given another state",
    c.TERMINAL_MUTATED: "a finished task was written again and kept its state",
    c.ANSWER_CONTRADICTED: "a client was told a final state that did not last",
    c.STREAM_CUT: "a stream ended without saying how the task ended",
    c.PUSH_CONTRADICTED: "the last push notification disagrees with the stored state",
    c.DISPATCH_AFTER_TERMINAL: "an executor acted on the outside after its task was finished",
    c.DOUBLE_EFFECT: "one action took effect twice",
    c.CONCURRENT_EXECUTION: "two executions of one task overlapped",
    c.CANCEL_INEFFECTIVE: "a cancel was confirmed but did not stop the task",
    c.ABANDONED: "a task is unfinished and nobody executes it",
    c.DOUBLE_APPLY: "one event was stored twice",
    c.VERSION_FORK: "two writes were accepted in the place of one",
    c.UNSEEN_WRITER: "something writes past the instrumentation",
    c.UNFENCED_STORE: "the store keeps no versions, so nothing is fenced",
}

REASON_MEANINGS: Final[Mapping[str, str]] = {
    c.ABSENT: "the task is not stored",
    c.FOREIGN_OWNER: "the id belongs to somebody else",
    c.ORPHAN_VERSION_ROW: "an interrupted delete left a version behind",
    c.OWN_COMMIT: "an earlier attempt had been stored after all",
    c.STALE_BASE: "another writer was first",
    c.TERMINAL: "the task is finished",
    c.UNEXPLAINED: "the store does not say why",
    c.STALE_EXECUTOR: "another writer finished the task",
    c.FENCED_BY_GUARD: "the guard held it back",
    c.QUEUE_CLOSED: "its queue was closed",
    c.SUBSCRIBER_EVICTED: "its subscriber was too slow",
    c.REPLACEMENT_IGNORED: "it replaced a task that exists",
    c.DISCARDED_AT_CLOSE: "it was still queued when the queue closed",
    c.ADMITTED: "its fence let the request through",
    c.REPLAYED: "it repeated its earlier answer",
}


def gravest_first(rules: Iterable[str]) -> list[str]:
    """Rules in the order in which `conventions` has them; unknown ones last."""
    places = {rule: place for place, rule in enumerate(c.RULES)}
    return sorted(rules, key=lambda rule: (places.get(rule, len(places)), rule))


def gravest(rules: Iterable[str]) -> str:
    """The gravest rule, and how many more; their names would be wider than any column."""
    first, *others = gravest_first(rules) or [""]
    return f"{shown(first, 40)} + {count(len(others))} more" if others else shown(first, 40)


VERDICT_WORDS: Final[Mapping[str, str]] = {
    c.VIOLATED: "Violated",
    c.UNKNOWN: "Unknown",
    c.FINE: "Fine",
}


def shown(text: str, limit: int = 200) -> str:
    """Text from outside, made visible: no control or direction marks, `limit` characters at most."""
    if len(text) > limit:
        head = (limit - 1) * 2 // 3
        text = f"{text[:head]}…{text[len(text) - (limit - 1 - head) :]}"
    return "".join(" " if ch in "\t\n\r" else "�" if _invisible(ch) else ch for ch in text)


def _invisible(character: str) -> bool:
    return unicodedata.category(character) in {"Cc", "Cf", "Co", "Cs", "Zl", "Zp"}


def short_id(identifier: str) -> str:
    """An id as people compare ids at a glance: ``7f3c9a2e…01e1``."""
    return shown(identifier, 13) if len(identifier) > 16 else shown(identifier)


def count(number: int, noun: str = "", plural: str = "") -> str:
    """``1 task``, ``1,204 tasks``; the number alone without a noun."""
    if not noun:
        return f"{number:,}"
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def duration(nanoseconds: int) -> str:
    """A length of time in two or three digits: ``840 µs``, ``12 ms``, ``4.2 s``, ``3 min``."""
    sign = "-" if nanoseconds < 0 else ""
    ns = abs(nanoseconds)
    if ns == 0:
        return "0"
    if ns < 1_000_000:
        return f"{sign}{ns / 1_000:.0f} µs"
    if ns < 1_000_000_000:
        return f"{sign}{ns / 1_000_000:.{0 if ns >= 10_000_000 else 1}f} ms"
    seconds = ns / 1_000_000_000
    if seconds < 60:
        return f"{sign}{seconds:.{0 if seconds >= 10 else 1}f} s"
    if seconds < 5_400:
        return f"{sign}{seconds / 60:.0f} min"
    if seconds < 129_600:
        return f"{sign}{seconds / 3_600:.0f} h"
    return f"{sign}{seconds / 86_400:.0f} days"


def elapsed(nanoseconds: int) -> str:
    """Time since a beginning, fine enough to tell neighbours apart: ``0.4 ms``, ``1,083 ms``."""
    if nanoseconds < 10_000_000:
        return f"{nanoseconds / 1_000_000:.1f} ms" if nanoseconds else "0"
    if nanoseconds < 10_000_000_000:
        return f"{nanoseconds / 1_000_000:,.0f} ms"
    return f"{nanoseconds / 1_000_000_000:,.2f} s"


def ago(then_unix_nano: int, now_unix_nano: int) -> str:
    """How long ago, in whole units: ``just now``, ``4 s ago``, ``3 min ago``."""
    seconds = max(0, now_unix_nano - then_unix_nano) // 1_000_000_000
    if seconds < 1:
        return "just now"
    return f"{seconds} s ago" if seconds < 60 else f"{duration(seconds * 1_000_000_000)} ago"


def clock(unix_nano: int, zone: str | None) -> str:
    """Time of day to the second in this time zone (IANA name; UTC when None)."""
    return moment(unix_nano, zone).strftime("%H:%M:%S")


def when(unix_nano: int, now_unix_nano: int, zone: str | None) -> str:
    """Time of day, with the date when it was not today. Stays true while a page is not redrawn."""
    then, now = moment(unix_nano, zone), moment(now_unix_nano, zone)
    return then.strftime("%H:%M:%S" if then.date() == now.date() else "%Y-%m-%d %H:%M:%S")


def precise(unix_nano: int, zone: str | None) -> str:
    """Date and time to the microsecond, with the offset from UTC."""
    return moment(unix_nano, zone).isoformat(" ", "microseconds")


def moment(unix_nano: int, zone: str | None) -> datetime:
    """The instant as an aware datetime in this time zone (IANA name; UTC when None or unknown)."""
    return datetime.fromtimestamp(unix_nano / 1_000_000_000, tz=_zone(zone))


def _zone(name: str | None) -> ZoneInfo | timezone:
    try:
        return ZoneInfo(name) if name else timezone.utc
    except (KeyError, ValueError, OSError):
        # The browser names a zone this machine's database does not have.
        return timezone.utc


def replica_names(replicas: Sequence[ReplicaRow], *, across_runs: bool = False) -> dict[str, str]:
    """What to call each replica: its name, with a part of its instance id where names repeat.

    Args:
        replicas: All that may have to be told apart.
        across_runs: Whether replicas of different runs are shown side by side. Otherwise a name that
            was used in an earlier run too stays as it is.
    """
    uses = Counter((row.name, None if across_runs else row.run) for row in replicas)
    return {
        row.replica: _called(row, alone=uses[row.name, None if across_runs else row.run] == 1)
        for row in replicas
    }


def _called(row: ReplicaRow, *, alone: bool) -> str:
    if row.name == row.replica:  # it has not told its name
        return short_id(row.replica)
    if row.name and alone:
        return shown(row.name, 40)
    return shown(f"{row.name} {row.replica[:4]}".strip(), 40)


def replica_name(names: Names, replica: str) -> str:
    """What to call this replica, also when nothing but its id is known."""
    return names.get(replica) or short_id(replica)


def version(value: Version) -> str:
    """``v3``; ``unversioned`` where the store keeps none."""
    return "unversioned" if value is None else f"v{shown(str(value), 24)}"


def state(value: str | None) -> str:
    """A task state, or words for not knowing it."""
    return shown(value, 40) if value else "no state"


def named(text: str, names: Names) -> str:
    """A finding's explanation, with replicas called by their names instead of their instance ids."""
    for replica, name in names.items():
        for identifier in (replica, replica[:_SHORT_INSTANCE]):
            if len(identifier) >= _SHORT_INSTANCE:
                text = text.replace(identifier, name)
    return shown(text, 600)


_SHORT_INSTANCE: Final = 8
"""How much of an instance id the checker's explanations show."""
