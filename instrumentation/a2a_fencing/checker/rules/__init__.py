"""The rules a history is judged by."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from a2a_fencing import conventions as c
from a2a_fencing.checker.history import History
from a2a_fencing.checker.report import Finding
from a2a_fencing.facts import Fact


def judge(history: History) -> Iterator[Finding]:
    """All findings of a history."""
    yield from _terminal(history)
    yield from _answers(history)
    yield from _forks(history)
    yield from _unfenced(history)


def _terminal(history: History) -> Iterator[Finding]:
    chain = history.chain
    states = {f.version: f for f in chain}
    for at, write in enumerate(chain):
        if write.state == c.CANCELED:
            before = next((f for f in reversed(chain[:at]) if f.version != write.version), None)
            replaced = before.state if before else write.base_state
        else:
            before = states.get(write.base_version)
            replaced = write.base_state or (before.state if before else None)
        if replaced in c.TERMINAL_STATES:
            yield _replacement(history, write, replaced, before)
    by_writer: dict[str | None, Fact] = {}
    for write in history.unversioned:
        before = by_writer.get(write.writer)
        if before is not None and before.state in c.TERMINAL_STATES:
            yield _replacement(history, write, before.state, before)
        by_writer[write.writer] = write


def _replacement(history: History, write: Fact, replaced: str | None, before: Fact | None) -> Finding:
    witness = ((before.id,) if before else ()) + (write.id,)
    then = f"{replaced} ({_who(before)})" if before else f"{replaced}"
    if replaced != write.state:
        text = f"{then} was overwritten by {write.state} ({_who(write)})"
        return Finding(
            c.TERMINAL_OVERWRITTEN, c.CRITICAL, c.PROVEN, history.key, witness, text, _key(write)
        )
    text = f"{then} was written again ({_who(write)})"
    return Finding(c.TERMINAL_MUTATED, c.INFO, c.PROVEN, history.key, witness, text, _key(write))


def _answers(history: History) -> Iterator[Finding]:
    chain = history.chain
    if not chain:
        return
    last = chain[-1]
    told: set[str] = set()
    for answer in history.answers:
        state = answer.state
        if state in c.TERMINAL_STATES and state != last.state and state not in told:
            told.add(str(state))
            told_by = f"a client was told {state} ({answer.method})"
            text = f"{told_by}, but the task ended {last.state} ({_who(last)})"
            yield Finding(
                c.ANSWER_CONTRADICTED,
                c.CRITICAL,
                c.PROVEN,
                history.key,
                (answer.id, last.id),
                text,
                str(state),
            )


def _forks(history: History) -> Iterator[Finding]:
    chain = history.chain
    for one, other in pairwise(chain):
        if one.version == other.version:
            text = f"two writes were accepted as v{one.version}: {one.state} and {other.state}"
            yield Finding(
                c.VERSION_FORK,
                c.CRITICAL,
                c.PROVEN,
                history.key,
                (one.id, other.id),
                text,
                f"v{one.version}",
            )


def _unfenced(history: History) -> Iterator[Finding]:
    first = next((f for f in history.facts if f.kind == c.WRITE and f.versioned is False), None)
    if first is not None:
        text = f"store {history.key.store} keeps no versions: nothing fences its writers"
        yield Finding(c.UNFENCED_STORE, c.INFO, c.PROVEN, history.key, (first.id,), text)


def _key(write: Fact) -> str:
    return f"v{write.version}" if write.version is not None else write.id


def _who(fact: Fact) -> str:
    version = f"v{fact.version}, " if fact.version is not None else ""
    return f"{version}{fact.replica[:8]}"
