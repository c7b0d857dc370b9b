"""Facts told as sentences, as plain text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from a2a_fencing import conventions as c
from a2a_fencing.facts import Fact
from a2a_fencing_dashboard.ui.words import REASON_MEANINGS, Names, replica_name, shown, state, version


def what(fact: Fact) -> str:
    """What was written or lost: a state, or the kind of event that carried none."""
    return (
        shown(fact.event_kind, 40) if fact.event_kind and _carries_no_state(fact) else state(fact.state)
    )


def _carries_no_state(fact: Fact) -> bool:
    return fact.state is None or fact.event_kind in {c.ARTIFACT_EVENT, c.MESSAGE_EVENT}


def sentence(fact: Fact, names: Names) -> str:
    """The fact as a person would tell it; plain text."""
    who = replica_name(names, fact.replica)
    tell = _SENTENCES.get(fact.kind)
    return tell(fact, who) if tell else f"{who} reported {shown(fact.kind, 40)}"


def _write(fact: Fact, who: str) -> str:
    on = f" on {version(fact.base_version)}" if fact.base_version is not None else ""
    if fact.outcome == c.ACCEPTED:
        became = f", which became {version(fact.version)}" if fact.version is not None else ""
        return f"{who} wrote {what(fact)}{on}{became}{_cause(fact)}"
    if fact.outcome == c.UNKNOWN:
        return f"{who} wrote {what(fact)}{on}; whether it was stored is unknown{_cause(fact)}"
    return f"{who}'s {what(fact)}{on} was refused: {_reason(fact)}"


def _cause(fact: Fact) -> str:
    return f" ({shown(fact.origin, 40)})" if fact.origin and fact.origin != c.FROM_EXECUTOR else ""


def _reason(fact: Fact) -> str:
    reason = fact.reason or ""
    meaning = REASON_MEANINGS.get(reason)
    return f"{meaning} ({reason})" if meaning else shown(reason, 60) or "no reason given"


def _read(fact: Fact, who: str) -> str:
    why = f" ({shown(fact.origin, 40)})" if fact.origin else ""
    return f"{who} read {state(fact.state)} at {version(fact.version)}{why}"


def _dropped(fact: Fact, who: str) -> str:
    return f"{who} dropped {what(fact)}: {_reason(fact)}"


def _execution(fact: Fact, who: str) -> str:
    token = f", token {fact.token}" if fact.token is not None else ""
    if fact.phase == c.STARTED:
        return f"{who} started to execute{token}"
    return f"{who}'s execution {_ENDINGS.get(fact.phase or '', shown(fact.phase or 'ended', 40))}{token}"


_ENDINGS: Final[Mapping[str, str]] = {
    c.FINISHED: "finished",
    c.CANCELLED: "was cancelled",
    c.RAISED: "raised an error",
}


def _dispatch(fact: Fact, who: str) -> str:
    name = shown(fact.name or "something", 60)
    token = f", token {fact.token}" if fact.token is not None else ""
    if fact.phase == c.STARTED:
        return f"{who} dispatches {name}{token}"
    outcome = shown(fact.outcome or c.UNKNOWN, 40)
    if fact.origin == c.FROM_RESOURCE:
        reason = f", {_reason(fact)}" if fact.reason else ""
        return f"{name} ({who}) answered the executor: {outcome}{reason}{token}"
    return f"{who} dispatched {name}: {outcome}{token}"


def _answer(fact: Fact, who: str) -> str:
    method = f" ({shown(fact.method, 40)})" if fact.method else ""
    if fact.ending is None:
        return f"{who} told a client {state(fact.state)}{method}"
    with_state = f" with {state(fact.state)}" if fact.state else ""
    return f"{who}'s stream ended{with_state}: {shown(fact.ending, 40)}{method}"


def _deleted(_: Fact, who: str) -> str:
    return f"{who} deleted the task"


def _violation(fact: Fact, who: str) -> str:
    return f"{who} itself reported {shown(fact.rule or 'a violation', 60)}"


_SENTENCES: Final[Mapping[str, Callable[[Fact, str], str]]] = {
    c.WRITE: _write,
    c.READ: _read,
    c.DROPPED: _dropped,
    c.EXECUTION: _execution,
    c.DISPATCH: _dispatch,
    c.ANSWER: _answer,
    c.DELETED: _deleted,
    c.VIOLATION: _violation,
}
