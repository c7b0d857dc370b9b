"""A finding as a person tells it: who wrote what on what, who had been told what, what is broken."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from a2a_fencing import conventions as c
from a2a_fencing.checker.report import Finding
from a2a_fencing.checker.rules import RULES
from a2a_fencing.checker.versions import after, by_number
from a2a_fencing.facts import Fact, Version

_LONGEST: Final = 12
_NEAR: Final = 4
_SHORT: Final = 8

_REASONS: Final = {
    c.ABSENT: "no such task is stored",
    c.FOREIGN_OWNER: "the id belongs to another owner",
    c.ORPHAN_VERSION_ROW: "a version row was left behind by an interrupted delete",
    c.OWN_COMMIT: "its own earlier attempt had been stored",
    c.STALE_BASE: "a rival had written since",
    c.TERMINAL: "the stored task is finished",
    c.UNEXPLAINED: "the store does not say why",
}
_PHASES: Final = {
    c.STARTED: "began an execution",
    c.FINISHED: "ended its execution",
    c.CANCELLED: "had its execution cancelled",
    c.RAISED: "had its execution fail",
}


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a story.

    Attributes:
        fact: What happened.
        text: The same in words.
    """

    fact: Fact
    text: str

    def __str__(self) -> str:
        """The words, with the id and the trace id of the fact."""
        trace = f", trace {self.fact.trace_id}" if self.fact.trace_id else ""
        return f"{self.text}  [{self.fact.id}{trace}]"


def tell(finding: Finding, facts: Iterable[Fact]) -> list[str]:
    """The finding step by step, ending with the guarantee that is broken.

    Args:
        finding: What was found.
        facts: As in `steps`. Of facts that the finding rests on and that are not among them, the id is
            told.

    Returns:
        One line a step, each with the id and the trace id of its fact.
    """
    told = steps([finding], facts)
    here = {step.fact.id for step in told}
    lines = [f"{number}. {step}" for number, step in enumerate(told, 1)]
    lines += [f"- fact {identity} is not here" for identity in finding.witness if identity not in here]
    return [*lines, *conclusion(finding)]


def conclusion(finding: Finding) -> list[str]:
    """What the steps show, and the guarantee that is broken."""
    lines = [f"{finding.explanation} ({finding.certainty})"]
    rule = RULES.get(finding.rule)
    if rule is not None:
        lines.append(f"Broken: {rule.guarantee}." if finding.violates else f"{rule.guarantee}.")
    return lines


def steps(findings: Sequence[Finding], facts: Iterable[Fact]) -> list[Step]:
    """What happened, as far as it belongs to these findings of one task, in order.

    Args:
        findings: One or several of the same task.
        facts: Facts of the task; heartbeats among them give the replicas their names.
    """
    known = list(facts)
    names = {f.replica: f.replica_name for f in known if f.replica_name}
    own = {f.id: f for f in known if f.task is not None and _same_task(f, findings[0])}
    identities = dict.fromkeys(identity for finding in findings for identity in finding.witness)
    witness = [own[identity] for identity in identities if identity in own]
    chosen = _in_order([*witness, *_context(witness, own.values())], own.values())
    several = _with_several_writers(chosen)
    return [Step(f, f"{_who(f, names, several)} {_deed(f)}") for f in chosen]


def _with_several_writers(facts: Iterable[Fact]) -> set[str]:
    """Replicas in whose process several store objects wrote, as two handlers in one test do."""
    writers: dict[str, set[str]] = {}
    for fact in facts:
        if fact.writer is not None:
            writers.setdefault(fact.replica, set()).add(fact.writer)
    return {replica for replica, seen in writers.items() if len(seen) > 1}


def _who(fact: Fact, names: Mapping[str, str | None], several: Collection[str]) -> str:
    name = names.get(fact.replica) or fact.replica[:_SHORT]
    if fact.replica in several and fact.writer is not None:
        return f"{name} /{fact.writer.rpartition('/')[2]}"
    return name


def _same_task(fact: Fact, finding: Finding) -> bool:
    key, task = fact.task, finding.task
    return key is not None and (key.store, key.owner, key.task_id) == (
        task.store,
        task.owner,
        task.task_id,
    )


def _context(witness: list[Fact], facts: Iterable[Fact]) -> Iterator[Fact]:
    """What belongs to the story beside the witness: what clients were told, and who was refused between.

    As many as leave the story short enough to be read; the witness itself is always told in full.
    """
    numbers: dict[str, list[int]] = {}
    for fact in witness:
        numbers.setdefault(fact.replica, []).append(fact.n)
    beside = (f for f in sorted(facts, key=_when) if f not in witness and _belongs(f, numbers))
    return islice(beside, max(_LONGEST - len(witness), 0))


def _belongs(fact: Fact, witness: Mapping[str, list[int]]) -> bool:
    if fact.state in c.TERMINAL_STATES and (
        _accepted(fact) or (fact.kind == c.ANSWER and fact.method != c.PUSH)
    ):
        return True
    numbers = witness.get(fact.replica)
    near = numbers is not None and min(numbers) - _NEAR <= fact.n <= max(numbers)
    refused = fact.kind == c.WRITE and fact.outcome != c.ACCEPTED
    return near and (refused or fact.kind == c.DROPPED or fact.origin == c.RELOAD)


def _when(fact: Fact) -> tuple[int, str]:
    return fact.time_unix_nano, fact.id


def _in_order(steps: list[Fact], facts: Iterable[Fact]) -> list[Fact]:
    """Steps by the version that their replica knew by then; clocks decide only what versions do not."""
    everything = sorted(facts, key=by_number)
    # Versions that were only read count too: the write of one may be missing.
    seen = {f.version for f in everything if f.version is not None}
    # Versions are all numbers or all text; should a store mix them, text comes after numbers.
    numbers = sorted(v for v in seen if isinstance(v, int))
    texts = sorted(v for v in seen if isinstance(v, str))
    versions: tuple[Version, ...] = (*numbers, *texts)
    place = {version: at for at, version in enumerate(versions, 1)}
    knows: dict[str, int] = {}
    reached: dict[str, int] = {}
    for fact in everything:
        known = max(knows.get(fact.replica, 0), place.get(_version_passed(fact, place), 0))
        knows[fact.replica] = reached[fact.id] = known
    return sorted(steps, key=lambda f: (reached[f.id], not _accepted(f), f.time_unix_nano, f.n))


def _version_passed(fact: Fact, versions: Iterable[Version]) -> Version:
    """The version that must have been stored when the fact was recorded."""
    if fact.version is None and fact.reason == c.STALE_BASE:
        return next((version for version in versions if after(version, fact.base_version)), None)
    return fact.base_version if fact.version is None else fact.version


def _accepted(fact: Fact) -> bool:
    return fact.kind == c.WRITE and fact.outcome == c.ACCEPTED


def _deed(fact: Fact) -> str:
    if fact.kind == c.WRITE:
        return _write(fact)
    if fact.kind == c.READ:
        at = "" if fact.version is None else f" at v{fact.version}"
        return f"read {fact.state}{at} ({fact.origin})"
    if fact.kind == c.ANSWER:
        return _answer(fact)
    if fact.kind == c.EXECUTION:
        return _PHASES.get(fact.phase or "", "executed")
    if fact.kind == c.DISPATCH:
        return _dispatch(fact)
    if fact.kind == c.DROPPED:
        return f"dropped {_article(fact.event_kind or 'event')} ({fact.reason})"
    return f"recorded {_article(fact.kind)}"


def _write(fact: Fact) -> str:
    what = f"{fact.state}" if fact.event_kind is None else f"{fact.state} ({fact.event_kind})"
    base = "as the first write" if fact.base_version is None else f"on v{fact.base_version}"
    if fact.version is None and fact.outcome == c.ACCEPTED:
        return f"wrote {what}, and the store kept no version"
    if fact.outcome == c.ACCEPTED:
        return f"wrote {what} {base}, and the store made it v{fact.version}"
    if fact.outcome == c.UNKNOWN:
        return f"tried to write {what} {base} and did not learn whether it was stored"
    return f"was refused {what} {base}: {_REASONS.get(fact.reason or '', fact.reason)}"


def _answer(fact: Fact) -> str:
    told = f"told {fact.state}" if fact.state else "told nothing final"
    if fact.method == c.PUSH:
        return f"notified a webhook of {fact.state}"
    if fact.ending is not None:
        return f"ended a stream ({fact.ending}), having {told}"
    return f"answered {fact.method or 'a client'}: {told}"


def _dispatch(fact: Fact) -> str:
    name = fact.name or "a request"
    if fact.phase == c.STARTED:
        believed = f", believing the task {fact.state}" if fact.state else ""
        return f"began to dispatch {name}{believed}"
    if fact.origin == c.FROM_RESOURCE:
        return f"was asked by the task, as {name}: {fact.outcome}"
    return f"saw {name} end: {fact.outcome}"


def _article(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"
