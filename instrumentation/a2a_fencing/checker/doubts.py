"""Why nothing certain can be said of an incarnation: the reasons for the verdict *unknown*."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from a2a_fencing import conventions as c
from a2a_fencing.checker.cluster import Cluster
from a2a_fencing.checker.conclusion import SETTLE_NS
from a2a_fencing.checker.incarnation import Incarnation
from a2a_fencing.checker.versions import is_cancel
from a2a_fencing.scoped import is_scoped

_CLOCKS_APART_NS = 1_000_000_000
"""By how much the clocks of two replicas are taken to differ where one told nothing of the task, ns."""


def doubts(life: Incarnation, cluster: Cluster) -> Iterator[str]:
    """The reasons, one sentence each."""
    if is_scoped(life.key):
        yield "only a resource told of the task; nothing is known of its executor"
    yield from _unknown_predecessors(life)
    yield from _open_writes(life, cluster)
    yield from _unordered(life)
    for replica in _silent_executors(life, cluster):
        yield f"{cluster.name(replica)} executed the task and has been silent since"


def cut_off(life: Incarnation, last_times: Mapping[str, int], cluster: Cluster) -> Iterator[str]:
    """The replicas that may have been at work on the task when they fell silent without having stopped.

    What they did last was lost with them: facts that waited to be sent, and events that an execution,
    though it had ended, had left in its queue. So a task is in doubt when its facts come from that time,
    whether the replica told anything of it or not. What was at rest before is not: nobody begins to work
    on a finished task. What went on after is not either: a version in between would show.

    Args:
        life: The task's latest incarnation.
        last_times: The time of each replica's last fact about the task, ns on its own clock.
        cluster: All replicas.
    """
    silent = cluster.cut_off
    if not silent:
        return
    told = _silent_executors(life, cluster)
    newest = max(last_times.values(), default=0)
    for replica, fell in sorted(silent.items()):
        own = last_times.get(replica)
        if replica in told:
            continue
        if own is not None:
            if fell - own <= SETTLE_NS:
                yield f"{cluster.name(replica)} fell silent while it worked on the task"
        elif cluster.may_use(replica, life.key.store) and (
            fell - _CLOCKS_APART_NS <= newest <= fell + cluster.heartbeat(replica) + _CLOCKS_APART_NS
        ):
            yield f"{cluster.name(replica)} fell silent at that time; what it did last was lost with it"


def _unknown_predecessors(life: Incarnation) -> Iterator[str]:
    versions = life.versions
    for version in sorted(versions.unwritten - life.indeterminate.landed.keys()):
        yield f"predecessor unknown: nobody reported the write of v{version}"
    lowest = next(iter(versions), None)
    first = lowest.write if lowest is not None else None
    if first is not None and is_cancel(first) and first.base_version is first.base_state is None:
        # A cancel may leave the base out, and there is none of a task that is not stored.
        yield f"predecessor unknown: nobody reported what the cancel at v{first.version} replaced"
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


def _silent_executors(life: Incarnation, cluster: Cluster) -> list[str]:
    """Replicas that began an execution, were not heard of since, and did not tell how it ended."""
    final = life.final()
    if life.ended or final is None or final.state in c.INTERRUPTED_STATES:
        return []
    runs = [life.executions.by_id[identity] for identity in sorted(life.executions.running)]
    return [
        run.replica
        for run in runs
        if cluster.silent(run.replica) and not cluster.idle_since(run.replica, run.start_n)
    ]
