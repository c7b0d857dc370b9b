"""The pytest plugin, on tests of an agent that is somebody else's."""

from __future__ import annotations

import sys

import pytest

# Pytester forgets what a test imports, the SDK too, unless it was there before.
import a2a_fencing.testing.plugin  # noqa: F401

pytest_plugins = ["pytester"]

INI = """
[pytest]
asyncio_mode = auto
asyncio_default_fixture_loop_scope = function
filterwarnings = error
addopts = -p a2a_fencing -p pytest_asyncio.plugin
"""

ANYIO_INI = """
[pytest]
filterwarnings = error
addopts = -p a2a_fencing -p anyio.pytest_plugin
"""

AGENT = """
import asyncio

import pytest
from a2a.server.cluster import TaskVersion
from a2a.server.context import ServerCallContext
from a2a.server.tasks.inmemory_task_store import InMemoryTaskStore
from a2a.types.a2a_pb2 import Task, TaskState, TaskStatus

from a2a_fencing.testing import InMemoryVersionedTaskStore

CALL = ServerCallContext()


class Agent:
    def __init__(self):
        self.store = InMemoryVersionedTaskStore(terminal_rule=False)
        self.version = TaskVersion.MISSING

    async def save(self, state):
        task = Task(id="7f3c", status=TaskStatus(state=TaskState.Value(f"TASK_STATE_{state}")))
        self.version = await self.store.save(task, prev_version=self.version, context=CALL)

    async def overwrites(self):
        for state in ("WORKING", "CANCELED", "COMPLETED"):
            await self.save(state)

    async def completes(self):
        for state in ("WORKING", "COMPLETED"):
            await self.save(state)

"""


@pytest.fixture
def tests(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A project with an agent to test, where warnings are errors."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makefile(".ini", pytest=INI)
    pytester.makepyfile(agent=AGENT)
    return pytester


def project(pytester: pytest.Pytester, body: str) -> None:
    pytester.makepyfile(test_it="from agent import *\n\n" + body)


ONE_OF_TWO_VIOLATES = """
async def test_good():
    await Agent().completes()

async def test_bad():
    await Agent().overwrites()
"""

# --- asking for it


def test_without_being_asked_it_watches_nothing(tests: pytest.Pytester) -> None:
    project(tests, ONE_OF_TWO_VIOLATES)
    tests.runpytest().assert_outcomes(passed=2)


def test_without_being_asked_it_imports_nothing(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makepyfile(
        """
        import sys

        def test_modules(request):
            assert request.config.pluginmanager.has_plugin("a2a_fencing")
            loaded = {name.partition(".")[0] for name in sys.modules}
            assert not loaded & {"a2a", "a2a_fencing", "opentelemetry", "sqlalchemy", "wrapt"}
        """
    )
    pytester.runpytest_subprocess("-p", "a2a_fencing").assert_outcomes(passed=1)


def test_the_option_watches_every_test(tests: pytest.Pytester) -> None:
    project(tests, ONE_OF_TWO_VIOLATES)
    result = tests.runpytest("--a2a-fencing")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*FAILED test_it.py::test_bad*"])


def test_a_failure_tells_the_witness_and_no_traceback(tests: pytest.Pytester) -> None:
    project(tests, ONE_OF_TWO_VIOLATES)
    result = tests.runpytest("--a2a-fencing")
    result.stdout.fnmatch_lines(
        [
            "a2a-fencing: violated terminal-overwritten",
            "terminal-overwritten (critical, proven) on task '7f3c'",
            "  1. * wrote CANCELED on v1, and the store made it v2 *",
            "  2. * wrote COMPLETED on v2, and the store made it v3 *",
            "  CANCELED (v2, *) was overwritten by COMPLETED (v3, *) (proven)",
            "  Broken: a terminal state is final.",
        ]
    )
    result.stdout.no_fnmatch_line("*Traceback*")
    result.stdout.no_fnmatch_line("*plugin.py*")


@pytest.mark.parametrize(
    "marked",
    [
        "@pytest.mark.a2a_fencing\nasync def test_bad():\n    await Agent().overwrites()",
        "async def test_bad(a2a_fencing):\n    await Agent().overwrites()",
        "@pytest.mark.a2a_fencing\nclass TestAgent:\n"
        "    async def test_bad(self):\n        await Agent().overwrites()",
        "import unittest\n\n@pytest.mark.a2a_fencing\nclass TestAgent(unittest.TestCase):\n"
        "    def test_bad(self):\n        asyncio.run(Agent().overwrites())",
    ],
    ids=["marker", "fixture", "class", "unittest"],
)
def test_one_test_asks(tests: pytest.Pytester, marked: str) -> None:
    project(tests, f"async def test_other():\n    await Agent().overwrites()\n\n{marked}\n")
    tests.runpytest("--strict-markers").assert_outcomes(passed=1, failed=1)


def test_a_test_that_asks_while_it_runs_is_judged_at_the_latest_at_teardown(
    tests: pytest.Pytester,
) -> None:
    project(
        tests,
        """
def test_bad(request):
    request.getfixturevalue("a2a_fencing")
    asyncio.run(Agent().overwrites())
""",
    )
    result = tests.runpytest()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*violated terminal-overwritten"])


def test_the_fixture_is_the_history(tests: pytest.Pytester) -> None:
    project(
        tests,
        """
async def test_it(a2a_fencing):
    await Agent().completes()
    assert [write.state for write in a2a_fencing.of("write")] == ["WORKING", "COMPLETED"]
""",
    )
    tests.runpytest().assert_outcomes(passed=1)


def test_each_test_has_a_history_of_its_own(tests: pytest.Pytester) -> None:
    project(
        tests,
        """
@pytest.fixture(scope="module")
def agent():
    return Agent()

async def test_first(agent):
    await agent.completes()

async def test_second(agent, a2a_fencing):
    assert a2a_fencing.facts == []
    await agent.save("COMPLETED")
    assert [fact.id.rpartition(":")[2] for fact in a2a_fencing.facts] == ["1"]
""",
    )
    tests.runpytest("--a2a-fencing").assert_outcomes(passed=2)


def test_help_and_markers_name_it(tests: pytest.Pytester) -> None:
    tests.runpytest("--help").stdout.fnmatch_lines(["*--a2a-fencing*"])
    tests.runpytest("--markers").stdout.fnmatch_lines(["@pytest.mark.a2a_fencing(*"])


# --- how a test ends


def test_what_the_fixtures_violate_is_an_error_at_teardown(tests: pytest.Pytester) -> None:
    project(
        tests,
        """
@pytest.fixture
async def agent():
    agent = Agent()
    yield agent
    await agent.save("COMPLETED")

async def test_it(agent):
    await agent.save("WORKING")
    await agent.save("CANCELED")
""",
    )
    result = tests.runpytest("--a2a-fencing")
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*ERROR at teardown of test_it*", "*violated terminal-overwritten"])


def test_what_the_body_violated_is_not_told_again_at_teardown(tests: pytest.Pytester) -> None:
    project(tests, ONE_OF_TWO_VIOLATES)
    tests.runpytest("--a2a-fencing", "-k", "bad").assert_outcomes(failed=1, errors=0)


def test_a_test_that_fails_itself_says_what_it_violated(tests: pytest.Pytester) -> None:
    project(
        tests,
        "async def test_bad():\n    await Agent().overwrites()\n    assert 1 == 2, 'its own failure'\n",
    )
    result = tests.runpytest("--a2a-fencing")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["*its own failure*", "*a2a-fencing*", "a2a-fencing: violated terminal-overwritten"]
    )


def test_skips_and_expected_failures_stay_what_they_are(tests: pytest.Pytester) -> None:
    project(
        tests,
        """
@pytest.mark.xfail(strict=True, reason="known")
async def test_known():
    await Agent().overwrites()

async def test_skipped():
    await Agent().overwrites()
    pytest.skip("not here")
""",
    )
    tests.runpytest("--a2a-fencing").assert_outcomes(xfailed=1, skipped=1)


def test_information_does_not_fail(tests: pytest.Pytester) -> None:
    project(
        tests,
        """
async def test_plain_store(a2a_fencing):
    store = InMemoryTaskStore()
    await store.save(Task(id="1", status=TaskStatus(state="TASK_STATE_COMPLETED")), CALL)
    assert [finding.severity for finding in a2a_fencing.check().findings] == ["info"]
""",
    )
    tests.runpytest().assert_outcomes(passed=1)


# --- what is allowed

TABLE = (
    '[tool.a2a-fencing]\nallow = [{rule = "terminal-overwritten", reason = "until the guard is on"}]\n'
)


def test_the_projects_allow_list(tests: pytest.Pytester) -> None:
    tests.makefile(".toml", pyproject=TABLE)
    project(tests, ONE_OF_TWO_VIOLATES)
    tests.runpytest("--a2a-fencing").assert_outcomes(passed=2)


def test_the_allow_list_is_the_projects_from_wherever_pytest_is_started(
    tests: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    tests.makefile(".toml", pyproject=TABLE)
    project(tests, ONE_OF_TWO_VIOLATES)
    elsewhere = tests.mkdir("elsewhere")
    monkeypatch.chdir(elsewhere)
    tests.runpytest("--a2a-fencing", f"--rootdir={tests.path}", tests.path).assert_outcomes(passed=2)


def test_the_markers_allow_list(tests: pytest.Pytester) -> None:
    project(
        tests,
        """
@pytest.mark.a2a_fencing(allow=["terminal-overwritten"])
async def test_names():
    await Agent().overwrites()

@pytest.mark.a2a_fencing(allow={"terminal-overwritten": "it shows the race"})
class TestReasons:
    @pytest.mark.a2a_fencing(allow=["abandoned"])
    async def test_both_markers_count(self):
        await Agent().overwrites()

@pytest.mark.a2a_fencing(allow=["abandoned"])
async def test_other():
    await Agent().overwrites()
""",
    )
    tests.runpytest().assert_outcomes(passed=2, failed=1)


def test_what_is_allowed_is_shown_beside_what_is_not(tests: pytest.Pytester) -> None:
    project(
        tests,
        """
@pytest.mark.a2a_fencing(allow={"version-fork": "a faulty store, on purpose"})
async def test_it():
    agent = Agent()
    await agent.overwrites()
    agent.store._stored.clear()
    agent.version = TaskVersion.MISSING
    await agent.save("WORKING")
""",
    )
    result = tests.runpytest()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["allowed: version-fork (a faulty store, on purpose)"])


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ("allow=['forgotten']", "there is no rule 'forgotten'; there are terminal-overwritten, *"),
        ("allow='forgotten'", "there is no rule 'forgotten'; *"),
        ("alow=[]", "the marker takes the keywords allow, audit and guard"),
        ("'abandoned'", "the marker takes the keywords allow, audit and guard"),
    ],
)
def test_a_marker_that_cannot_be_understood(
    tests: pytest.Pytester, arguments: str, complaint: str
) -> None:
    project(tests, f"@pytest.mark.a2a_fencing({arguments})\nasync def test_it(): pass\n")
    result = tests.runpytest()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([f"@pytest.mark.a2a_fencing: {complaint}"])


@pytest.mark.parametrize("option", [["--a2a-fencing"], []], ids=["every test", "a marker"])
def test_an_allow_list_that_cannot_be_understood_ends_the_run(
    tests: pytest.Pytester, option: list[str]
) -> None:
    tests.makefile(".toml", pyproject='[tool.a2a-fencing]\nallow = [{rule = "abandoned"}]\n')
    project(tests, "@pytest.mark.a2a_fencing\nasync def test_it(): pass\n")
    result = tests.runpytest(*option)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: *pyproject.toml: allow[[]0] (abandoned) gives no reason"])


# --- among others


def test_options_of_the_marker_reach_the_instrumentation(tests: pytest.Pytester) -> None:
    project(
        tests,
        """
@pytest.mark.a2a_fencing(guard="store", audit=True)
async def test_it(a2a_fencing):
    with pytest.raises(Exception, match="7f3c"):
        await Agent().overwrites()
    assert "audit" in [read.origin for read in a2a_fencing.of("read")]
""",
    )
    tests.runpytest().assert_outcomes(passed=1)


def test_an_application_that_instruments_itself_is_watched_all_the_same(
    tests: pytest.Pytester,
) -> None:
    project(
        tests,
        """
import a2a_fencing as instrumentation

async def test_it():
    instrumentation.instrument()
    try:
        await Agent().overwrites()
    finally:
        instrumentation.uninstrument()
""",
    )
    tests.runpytest("--a2a-fencing").assert_outcomes(failed=1)


def test_workers_of_xdist(tests: pytest.Pytester) -> None:
    pytest.importorskip("xdist")
    project(tests, ONE_OF_TWO_VIOLATES)
    result = tests.runpytest_subprocess("-p", "xdist.plugin", "-n", "2", "--a2a-fencing")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*a2a-fencing: violated terminal-overwritten"])


def test_another_async_plugin(tests: pytest.Pytester) -> None:
    tests.makefile(".ini", pytest=ANYIO_INI)
    project(
        tests,
        """
pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("anyio_backend", ["asyncio"])]
"""
        + ONE_OF_TWO_VIOLATES,
    )
    tests.runpytest("--a2a-fencing").assert_outcomes(passed=1, failed=1)


def test_nothing_is_left_behind(tests: pytest.Pytester) -> None:
    project(tests, ONE_OF_TWO_VIOLATES)
    from a2a_fencing import recorder
    from a2a_fencing.testing import InMemoryVersionedTaskStore

    before = vars(InMemoryVersionedTaskStore)["save"]
    tests.runpytest("--a2a-fencing")
    assert vars(InMemoryVersionedTaskStore)["save"] is before
    assert recorder.active() is None


def test_a_process_that_is_instrumented_already_gives_no_warning(tests: pytest.Pytester) -> None:
    project(tests, "async def test_good():\n    await Agent().completes()\n")
    code = "import sys, a2a_fencing, pytest; sys.exit(pytest.main(['-W', 'error', '--a2a-fencing']))"
    assert tests.run(sys.executable, "-c", code).ret == pytest.ExitCode.OK
