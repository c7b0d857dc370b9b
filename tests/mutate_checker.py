"""Removes the conditions of the checker's rules one at a time; every removal must make a test fail.

    python tests/mutate_checker.py [WORD ...]

Works on a copy; WORD limits it to mutants whose name contains it. Exits 1 when a mutant survives.
Not collected by pytest: it takes minutes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
CHECKER = Path("instrumentation/a2a_fencing/checker")
TESTS = "tests/unit/checker"


class Mutant(NamedTuple):
    """A condition, and the checker without it."""

    name: str
    file: str
    before: str
    after: str


MUTANTS = (
    Mutant(
        "terminal-overwritten: any state may be overwritten",
        "rules/terminal.py",
        "if before is None or not before.terminal:",
        "if before is None:",
    ),
    Mutant(
        "terminal-overwritten: the same state overwrites too",
        "rules/terminal.py",
        "rule = OVERWRITTEN if before.state != write.state else MUTATED",
        "rule = OVERWRITTEN",
    ),
    Mutant(
        "terminal-overwritten: an uncertain predecessor proves",
        "rules/terminal.py",
        "suspected=not before.certain or bool(at.rivals) or",
        "suspected=",
    ),
    Mutant(
        "terminal-overwritten: a gap refutes nothing",
        "rules/terminal.py",
        "if_complete=landed or not before.own,",
        "if_complete=False,",
    ),
    Mutant(
        "terminal-overwritten: unversioned, any state",
        "rules/terminal.py",
        "    if state not in c.TERMINAL_STATES:\n        return ()\n",
        "",
    ),
    Mutant(
        "terminal-overwritten: unversioned overlap proves",
        "rules/terminal.py",
        "suspected=len(life.sequence.last) > 1 or (shown is not None and overlap(shown, write)),",
        "suspected=len(life.sequence.last) > 1,",
    ),
    Mutant(
        "terminal-overwritten: unversioned, several replicas prove",
        "rules/terminal.py",
        "suspected=len(life.sequence.last) > 1 or",
        "suspected=",
    ),
    Mutant(
        "terminal-overwritten: across replicas without clocks",
        "rules/terminal.py",
        "and cluster.before(ended, write)",
        "and True",
    ),
    Mutant(
        "terminal-mutated: every repetition is told",
        "rules/terminal.py",
        "if rule is MUTATED and _entered_earlier(life, before):",
        "if False:",
    ),
    Mutant(
        "predecessor: a cancel replaces its base",
        "predecessor.py",
        "if base is not None and not is_cancel(write) and",
        "if base is not None and",
    ),
    Mutant(
        "predecessor: a hole before a cancel is ignored",
        "predecessor.py",
        "if before is None or not life.versions.gapless_to(at.version):",
        "if before is None:",
    ),
    Mutant(
        "predecessor: an audit is not believed",
        "predecessor.py",
        "(read.origin == c.AUDIT or (knows and believed is None))",
        "(knows and believed is None)",
    ),
    Mutant(
        "predecessor: a save past the versions is not seen",
        "predecessor.py",
        "    if life.sequence.writes:\n",
        "    if False:\n",
    ),
    Mutant(
        "answer-contradicted: what was told is never compared",
        "rules/answers.py",
        "if state != final.state\n",
        "if False\n",
    ),
    Mutant(
        "answer-contradicted: an answer ahead of the facts",
        "rules/answers.py",
        "    if not (stored or final.terminal):\n        return\n",
        "",
    ),
    Mutant(
        "answer-contradicted: what nobody stored proves",
        "rules/answers.py",
        "suspected=not stored,",
        "suspected=False,",
    ),
    Mutant(
        "answer-contradicted: own order is ignored without versions",
        "rules/answers.py",
        "if answer.replica != final.fact.replica or final.fact.n < answer.n:",
        "if True:",
    ),
    Mutant(
        "stream-cut: also while the task runs",
        "rules/answers.py",
        "    final = life.final()\n    if final is None or not final.terminal:\n        return ()\n"
        "    return [found for stream",
        "    final = life.final()\n    if final is None:\n        return ()\n"
        "    return [found for stream",
    ),
    Mutant(
        "stream-cut: also before the task ended",
        "rules/answers.py",
        "by_order = seen is not None and seen.n < stream.n",
        "by_order = seen is not None",
    ),
    Mutant(
        "stream-cut: any ending",
        "answers.py",
        "elif answer.ending in (c.END_CUT, c.END_EVICTED):",
        "elif answer.ending is not None:",
    ),
    Mutant(
        "push-contradicted: an undelivered push counts",
        "answers.py",
        "if state is not None and answer.outcome in (None, c.ACCEPTED):",
        "if state is not None:",
    ),
    Mutant(
        "push-contradicted: the right push does not help",
        "rules/answers.py",
        "    if not right:\n",
        "    if True:\n",
    ),
    Mutant(
        "push-contradicted: the order of pushes is ignored",
        "rules/answers.py",
        "late = [push for push in wrong if _after_all(push, right, cluster)]",
        "late = []",
    ),
    Mutant(
        "push-contradicted: at once",
        "rules/answers.py",
        "not_before=max(final.fact.time_unix_nano, last.time_unix_nano) + SETTLE_NS,",
        "not_before=0,",
    ),
    Mutant(
        "dispatch-after-terminal: before it too",
        "rules/dispatches.py",
        "if (ended.replica == start.replica and ended.n < start.n)",
        "if (ended.replica == start.replica)",
    ),
    Mutant(
        "dispatch-after-terminal: the executor's own end counts",
        "rules/dispatches.py",
        "if not (write.replica == start.replica and executes(write))\n        and",
        "if True and",
    ),
    Mutant(
        "dispatch-after-terminal: an end after its own counts",
        "rules/dispatches.py",
        "and not (own is not None and _follows(write, own))",
        "",
    ),
    Mutant(
        "dispatch-after-terminal: an end that may be its own counts",
        "rules/dispatches.py",
        "and not _may_be_own(life, seen):",
        "and True:",
    ),
    Mutant(
        "dispatch-after-terminal: the clocks prove",
        "rules/dispatches.py",
        "suspected=by_order is None or bool(start.unparented),",
        "suspected=bool(start.unparented),",
    ),
    Mutant(
        "dispatch-after-terminal: an unparented one proves",
        "rules/dispatches.py",
        "suspected=by_order is None or bool(start.unparented),",
        "suspected=by_order is None,",
    ),
    Mutant(
        "dispatch-after-terminal: accepted is a warning",
        "rules/dispatches.py",
        "severity=c.CRITICAL if accepted else c.WARNING,",
        "severity=c.WARNING,",
    ),
    Mutant(
        "double-effect: any outcome is an effect",
        "dispatches.py",
        "(e for e in self.ends if e.outcome == c.ACCEPTED and e.reason != c.ADMITTED)",
        "(e for e in self.ends if e.reason != c.ADMITTED)",
    ),
    Mutant(
        "double-effect: what was only let through is an effect",
        "dispatches.py",
        " and e.reason != c.ADMITTED)",
        ")",
    ),
    Mutant(
        "double-effect: a repeated answer is an effect",
        "dispatches.py",
        "if any(end.reason == c.REPLAYED for end in self.ends):",
        "if False:",
    ),
    Mutant(
        "double-effect: one is two",
        "dispatches.py",
        "        if len(effects) > 1:\n",
        "        if True:\n",
    ),
    Mutant(
        "concurrent-execution: one after the other overlaps",
        "executions.py",
        "return self.start_n < n and (self.end is None or n < self.end_n)",
        "return self.start_n < n",
    ),
    Mutant(
        "concurrent-execution: touching spans overlap",
        "sightings.py",
        "return low < high or (low == high and inside)",
        "return low <= high",
    ),
    Mutant(
        "concurrent-execution: versions do not tell",
        "rules/executions.py",
        "    if witness is not None:\n        versions",
        "    if False:\n        versions",
    ),
    Mutant(
        "concurrent-execution: the clocks always tell",
        "rules/executions.py",
        "return cluster.before(one.start, other.end) and cluster.before(other.start, one.end)",
        "return True",
    ),
    Mutant(
        "concurrent-execution: a lost end accuses",
        "rules/executions.py",
        "not_before=None if first.end is not None else 0,",
        "not_before=None,",
    ),
    Mutant(
        "cancel-ineffective: an ended task is not effective either",
        "rules/executions.py",
        "    final = life.final()\n    if final is None or final.terminal:\n        return\n",
        "    final = life.final()\n    if final is None:\n        return\n",
    ),
    Mutant(
        "cancel-ineffective: a write before the cancel ran on",
        "rules/executions.py",
        "and after(last.version, canceled):",
        "and True:",
    ),
    Mutant(
        "cancel-ineffective: a cancelled executor ran on",
        "rules/executions.py",
        "and run.end is not None and run.end.phase == c.FINISHED",
        "and run.end is not None",
    ),
    Mutant(
        "cancel-ineffective: any answer is a cancel",
        "answers.py",
        "if answer.method == c.CANCEL_TASK and state == c.CANCELED:",
        "if state == c.CANCELED:",
    ),
    Mutant(
        "abandoned: terminal tasks too",
        "rules/executions.py",
        "if final is None or final.terminal or final.state in c.INTERRUPTED_STATES:",
        "if final is None or final.state in c.INTERRUPTED_STATES:",
    ),
    Mutant(
        "abandoned: interrupted tasks too",
        "rules/executions.py",
        "if final is None or final.terminal or final.state in c.INTERRUPTED_STATES:",
        "if final is None or final.terminal:",
    ),
    Mutant(
        "abandoned: an executor at work does not count",
        "rules/executions.py",
        "        if cluster.successor(run.replica) is None:\n            return ()\n",
        "",
    ),
    Mutant(
        "abandoned: a heartbeat that executes nothing says nothing",
        "rules/executions.py",
        "        if cluster.idle_since(run.replica, run.start_n):\n            continue\n",
        "",
    ),
    Mutant(
        "abandoned: a replaced process proves",
        "rules/executions.py",
        "suspected=replaced,",
        "suspected=False,",
    ),
    Mutant(
        "abandoned: a shared name replaces",
        "cluster.py",
        "is not None and started > me.last_time",
        "is not None",
    ),
    Mutant(
        "double-apply: any next write is the retry",
        "rules/versions.py",
        "if same and first.event_kind is not None and own[0].n > first.n:",
        "if own[0].n > first.n:",
    ),
    Mutant(
        "double-apply: an unmarked retry proves",
        "rules/versions.py",
        "suspected=again.attempt is None or again.attempt < 2,",
        "suspected=False,",
    ),
    Mutant(
        "version-fork: two writes of one version",
        "rules/versions.py",
        "    if at.others:\n        one, other",
        "    if False:\n        one, other",
    ),
    Mutant(
        "version-fork: an older base is no fork",
        "rules/versions.py",
        "rival = _between(life, write.base_version, at)",
        "rival = None",
    ),
    Mutant(
        "version-fork: a cancel forks",
        "rules/versions.py",
        "    if is_cancel(write):\n        return ()\n    rival",
        "    rival",
    ),
    Mutant(
        "version-fork: a gap refutes nothing",
        "rules/versions.py",
        "(one, other),\n                text,\n                suspected=life.may_be_several,\n"
        "                if_complete=True,\n",
        "(one, other),\n                text,\n                suspected=life.may_be_several,\n",
    ),
    Mutant(
        "unseen-writer: a task created twice is one life",
        "rules/versions.py",
        "(at.author, seen),\n                text,\n                suspected=life.may_be_several,\n",
        "(at.author, seen),\n                text,\n",
    ),
    Mutant(
        "created twice: only accepted writes create",
        "incarnation.py",
        "return self.born is not None and self.indeterminate.creates_after(self.born)",
        "return False",
    ),
    Mutant(
        "created twice: a lost first try counts",
        "landing.py",
        " or write.n > born.n)",
        " or True)",
    ),
    Mutant(
        "unseen-writer: a moved state is not seen",
        "rules/versions.py",
        "        if read.state is not None and read.state != written:\n",
        "        if False:\n",
    ),
    Mutant(
        "unseen-writer: what came before the facts counts",
        "rules/versions.py",
        "if lowest is None or at.version < lowest or witness is None:",
        "if witness is None:",
    ),
    Mutant(
        "unseen-writer: a silent replica is not asked",
        "rules/versions.py",
        "    if _unreported(life, at, witness, cluster):\n        return ()\n",
        "",
    ),
    Mutant(
        "unfenced-store: versioned stores too",
        "fences.py",
        "if store not in self._versioned and write.task is not None:",
        "if write.task is not None:",
    ),
    Mutant(
        "unfenced-store: never",
        "fences.py",
        "            self._first[store] = (*when, write)\n            self._changed = True\n",
        "            self._first[store] = (*when, write)\n",
    ),
    Mutant(
        "landing: a fitting version does not decide",
        "landing.py",
        "if _state_seen(at) not in (None, write.state):",
        "if True:",
    ),
    Mutant(
        "landing: any state fits",
        "landing.py",
        "if _state_seen(at) not in (None, write.state):",
        "if False:",
    ),
    Mutant(
        "landing: a place taken decides nothing",
        "landing.py",
        "any(not is_cancel(other) for other in before.derived):",
        "False:",
    ),
    Mutant(
        "doubts: an unknown predecessor is fine",
        "doubts.py",
        "    yield from _unknown_predecessors(life)\n",
        "",
    ),
    Mutant(
        "doubts: an open write is fine",
        "doubts.py",
        "    yield from _open_writes(life, cluster)\n",
        "",
    ),
    Mutant(
        "doubts: a silent executor is fine",
        "doubts.py",
        "for replica in _silent_executors(life, cluster):",
        "for replica in ():",
    ),
    Mutant(
        "exposure: a gap concerns nobody",
        "exposure.py",
        "if not self._created_after(life, gap):",
        "if False:",
    ),
    Mutant(
        "announcing: an absence counts though facts are missing",
        "announcer.py",
        "if due is not None and (not complete or",
        "if due is not None and (False or",
    ),
    Mutant(
        "doubt: a silent replica lost nothing of tasks it told nothing of",
        "doubts.py",
        "elif cluster.may_use(replica, life.key.store) and (",
        "elif False and (",
    ),
    Mutant(
        "doubt: a silent replica may have used any store",
        "cluster.py",
        "return store in stores or not stores",
        "return True",
    ),
    Mutant(
        "doubt: also what was at rest before",
        "doubts.py",
        "fell - _CLOCKS_APART_NS <= newest <=",
        "newest <=",
    ),
    Mutant(
        "doubt: also what went on after",
        "doubts.py",
        "<= newest <= fell + cluster.heartbeat(replica) + _CLOCKS_APART_NS",
        "<= newest",
    ),
    Mutant(
        "filing: a terminal write is nothing to judge",
        "incarnation.py",
        "if state != write.base_state or state in c.TERMINAL_STATES:",
        "if state != write.base_state:",
    ),
)


def main() -> int:
    chosen = [m for m in MUTANTS if all(word in m.name for word in sys.argv[1:])]
    survivors = []
    with tempfile.TemporaryDirectory() as place:
        copy = Path(place)
        for part in ("instrumentation", "tests"):
            shutil.copytree(ROOT / part, copy / part, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", copy)
        if not passes(copy):
            print("the tests fail without any mutant")
            return 2
        for mutant in chosen:
            killed = kill(copy, mutant)
            print(f"{'killed  ' if killed else 'SURVIVED'}  {mutant.name}", flush=True)
            if not killed:
                survivors.append(mutant)
    print(f"{len(chosen) - len(survivors)} of {len(chosen)} killed")
    return 1 if survivors else 0


def kill(copy: Path, mutant: Mutant) -> bool:
    """Whether a test fails with this condition removed."""
    file = copy / CHECKER / mutant.file
    source = file.read_text()
    if source.count(mutant.before) == 0:
        raise SystemExit(f"{mutant.file} does not contain what {mutant.name!r} removes")
    file.write_text(source.replace(mutant.before, mutant.after))
    try:
        return not passes(copy)
    finally:
        file.write_text(source)


def passes(copy: Path) -> bool:
    """Whether the tests pass; the quick ones are asked first."""
    quick = [f"{TESTS}/test_{name}.py" for name in ("cases", "rules", "checker")]
    path = os.pathsep.join((str(copy / "instrumentation"), str(copy / "tests")))
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    for tests in (quick, [TESTS]):
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
        done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, check=False)
        if done.returncode:
            return False
    return True


if __name__ == "__main__":
    raise SystemExit(main())
