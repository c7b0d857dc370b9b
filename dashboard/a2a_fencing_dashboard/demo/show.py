"""One run of the demo, from the first process to the table at the end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

from a2a_fencing_dashboard.demo import summary
from a2a_fencing_dashboard.demo.cluster import Cluster
from a2a_fencing_dashboard.demo.confirm import Confirmation, confirm
from a2a_fencing_dashboard.demo.load import Tally
from a2a_fencing_dashboard.demo.settings import DemoSettings
from a2a_fencing_dashboard.processes import Supervisor
from a2a_fencing_dashboard.store import open_store
from a2a_fencing_dashboard.store.protocol import Store, Window
from a2a_fencing_dashboard.ui.words import count

Say = Callable[[str], None]


def run(
    supervisor: Supervisor, settings: DemoSettings, *, store_url: str, endpoint: str, say: Say
) -> bool:
    """Runs the cluster under load, then tells what was found.

    Args:
        supervisor: Whose children the replicas become.
        settings: What the run is made of.
        store_url: The receiver's store.
        endpoint: The receiver.
        say: Prints a line.

    Returns:
        Whether the load ran its time; False when somebody stopped it.

    Raises:
        ChildError: A process ended by itself; each replica has a log in the demo's folder.
    """
    cluster = Cluster(supervisor, settings, endpoint=endpoint)
    say(f"replicas   {' '.join(cluster.urls)}")
    with cluster.stoppable():
        say(f"load       {_load(settings)}")
        tally = cluster.work()
    cluster.stop()
    store = open_store(store_url)
    try:
        for line in _story(store, settings, tally):
            say(line)
    finally:
        store.close()
    return not cluster.stopped_by_hand


def _load(settings: DemoSettings) -> str:
    clients = count(settings.concurrency, "client")
    if settings.seconds is None:
        return f"{clients}, until Ctrl-C, which then ends everything"
    return f"{clients} for {settings.seconds:g} s; Ctrl-C ends it earlier"


def _story(store: Store, settings: DemoSettings, tally: Tally) -> Iterator[str]:
    window = Window(run=settings.run)
    yield ""
    first, *rest = summary.table(store, window)
    yield f"{tally.seconds:.0f} s, {first}"
    yield from rest
    tasks = summary.violated_tasks(store, window)
    if tasks:
        yield _verified(asyncio.run(confirm(settings.dsn, tasks, tally.told)))
    if tally.errors:
        failed = ", ".join(f"{name} {number:,}" for name, number in sorted(tally.errors.items()))
        yield f"failed requests: {failed} (logs in {settings.folder})"
    yield f"databases and logs: {settings.folder}"
    if tasks and not settings.guard:
        yield "again with the guard: make demo ARGS=--guard, or a2a-fencing demo --guard"


def _verified(confirmation: Confirmation) -> str:
    confirmed, doubtful = confirmation.confirmed, confirmation.unconfirmed
    line = (
        f"confirmed in the tasks' own database: {len(confirmed):,} of"
        f" {count(len(confirmed) + len(doubtful), 'violated task')}"
    )
    return f"{line}; not: {', '.join(sorted(doubtful))}" if doubtful else line
