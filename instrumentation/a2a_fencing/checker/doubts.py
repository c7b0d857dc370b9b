"""Why nothing certain can be said of an incarnation: the reasons for the verdict *unknown*."""

from __future__ import annotations

from collections.abc import Iterator

from a2a_fencing import conventions as c
from a2a_fencing.checker.cluster import Cluster
from a2a_fencing.checker.incarnation import Incarnation


def doubts(life: Incarnation, cluster: Cluster) -> Iterator[str]:
    """The reasons, one sentence each."""
    yield from _unknown_predecessors(life)
    yield from _open_writes(life, cluster)
    yield from _unordered(life)
    yield from _silent_executors(life, cluster)


def _unknown_predecessors(life: Incarnation) -> Iterator[str]:
    versions = life.versions
    for version in sorted(versions.unwritten - life.indeterminate.landed.keys()):
        yield f"predecessor unknown: nobody reported the write of v{version}"
    if versions.holes:
        yield f"predecessor unknown: {versions.holes} versions between the known ones were not reported"
    refused, highest = life.stale_base, versions.highest
    if refused is not None and highest is not None and highest.version == refused.base_version:
        yield f"a rival moved on from v{refused.base_version}, and its write was not reported"


def _open_writes(life: Incarnation, cluster: Cluster) -> Iterator[str]:
    for write in life.indeterminate.undecided(life.versions):
        yield (
            f"{cluster.name(write.replica)} does not know whether its {write.state}"
            f" on {'nothing' if write.base_version is None else f'v{write.base_version}'} was stored"
        )


def _unordered(life: Incarnation) -> Iterator[str]:
    writers = life.sequence.last
    if life.versions.alien:
        yield "the store gave versions of two kinds, which cannot be compared"
    if len(writers) > 1:
        yield f"{len(writers)} replicas wrote without versions: which write was the last cannot be told"
    elif writers and len(life.versions):
        yield "something was written without a version among writes that have one"


def _silent_executors(life: Incarnation, cluster: Cluster) -> Iterator[str]:
    final = life.final()
    if life.ended or final is None or final.terminal or final.state in c.INTERRUPTED_STATES:
        return
    for identity in sorted(life.executions.running):
        run = life.executions.by_id[identity]
        if cluster.silent(run.replica) and not cluster.idle_since(run.replica, run.start_n):
            yield f"{cluster.name(run.replica)} executed the task and has been silent since"
