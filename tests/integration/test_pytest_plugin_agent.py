"""The pytest plugin on tests of a real agent: real handlers, two replicas on one database."""

from __future__ import annotations

import pytest

# Pytester forgets what a test imports, the SDK too, unless it was there before.
import a2a_fencing.testing.plugin  # noqa: F401
import support.cluster  # noqa: F401

pytest_plugins = ["pytester"]

INI = """
[pytest]
asyncio_mode = auto
asyncio_default_fixture_loop_scope = function
filterwarnings = error
addopts = -p a2a_fencing -p pytest_asyncio.plugin --a2a-fencing
"""

AGENT = """
import asyncio

import pytest
from a2a.server.context import ServerCallContext

from support.cluster import artifact, cluster, collect, idle, message, status, submitted, until

CALL = ServerCallContext()


class Steps:
    def __init__(self):
        self.started, self.go_on, self.task_id = asyncio.Event(), asyncio.Event(), ""

    async def work(self, context, queue):
        self.task_id = context.task_id
        await queue.enqueue_event(submitted(context))
        await queue.enqueue_event(status(context, "WORKING"))
        self.started.set()
        await self.go_on.wait()
        await self.then(context, queue)

    async def then(self, context, queue):
        await queue.enqueue_event(artifact(context))
        await queue.enqueue_event(status(context, "COMPLETED"))


async def working(node, steps):
    stream = asyncio.create_task(collect(node.handler.on_message_send_stream(message(), CALL)))
    await steps.started.wait()

    async def stored():
        found = await node.stored(steps.task_id)
        return found is not None and int(found.version._value) == 2

    await until(stored)
    return stream


async def released(node, steps):
    async def gone():
        return await node.handler._active_task_registry.get(steps.task_id) is None

    await until(gone)


@pytest.fixture
def steps():
    return Steps()


@pytest.fixture
async def nodes(steps, tmp_path):
    dsn = f"sqlite+aiosqlite:///{tmp_path}/tasks.db"
    async with cluster(dsn, steps.work, idle) as started:
        yield started

"""


@pytest.fixture
def tests(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makefile(".ini", pytest=INI)
    return pytester


def run(pytester: pytest.Pytester, body: str) -> pytest.RunResult:
    pytester.makepyfile(test_agent=AGENT + body)
    return pytester.runpytest()


def test_a_remote_cancel_that_is_overwritten_fails_and_tells_the_two_handlers_apart(
    tests: pytest.Pytester,
) -> None:
    result = run(
        tests,
        """
async def test_cancel(nodes, steps):
    a, b = nodes
    stream = await working(a, steps)
    await b.cancel(steps.task_id)
    steps.go_on.set()
    await stream
    await released(a, steps)
""",
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "a2a-fencing: violated *terminal-overwritten*",
            "terminal-overwritten (critical, proven) on task *",
            "*  ?. * /* wrote CANCELED (status-update) on v2, and the store made it v3 *",
            "*  ?. * /* wrote COMPLETED (status-update) on v3, and the store made it v4 *",
            "*Broken: a terminal state is final.",
        ]
    )
    writers = [
        line.split(" wrote ")[0].split("/")[-1]
        for line in result.outlines
        if " wrote C" in line and "the store made it" in line
    ]
    assert len(set(writers)) == 2


def test_an_executor_that_outlives_the_body_is_an_error_at_teardown(tests: pytest.Pytester) -> None:
    result = run(
        tests,
        """
@pytest.fixture(autouse=True)
async def late(nodes, steps):
    yield
    steps.go_on.set()
    await released(nodes[0], steps)

async def test_cancel(nodes, steps):
    a, b = nodes
    await working(a, steps)
    await b.cancel(steps.task_id)
""",
    )
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*ERROR at teardown of test_cancel*", "*terminal-overwritten*"])


def test_what_only_the_teardown_stops_is_not_called_abandoned(tests: pytest.Pytester) -> None:
    result = run(
        tests,
        """
async def test_progress(nodes, steps, a2a_fencing):
    await working(nodes[0], steps)
    assert [write.state for write in a2a_fencing.of("write")] == ["SUBMITTED", "WORKING"]
""",
    )
    result.assert_outcomes(passed=1)


def test_a_task_that_its_executor_left_unfinished_is_abandoned(tests: pytest.Pytester) -> None:
    result = run(
        tests,
        """
async def test_forgetful(nodes, steps, a2a_fencing):
    async def forget(context, queue):
        pass

    steps.then = forget
    await working(nodes[0], steps)
    steps.go_on.set()

    async def returned():
        return any(fact.phase == "finished" for fact in a2a_fencing.of("execution"))

    await until(returned)
""",
    )
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*ERROR at teardown of test_forgetful*", "*violated abandoned"])


def test_the_guard_lets_the_same_cancel_pass(tests: pytest.Pytester) -> None:
    result = run(
        tests,
        """
@pytest.mark.a2a_fencing(guard=True, allow=["cancel-ineffective"])
async def test_cancel(nodes, steps):
    a, b = nodes
    stream = await working(a, steps)
    await b.cancel(steps.task_id)
    steps.go_on.set()
    await stream
    await released(a, steps)
""",
    )
    result.assert_outcomes(passed=1)
