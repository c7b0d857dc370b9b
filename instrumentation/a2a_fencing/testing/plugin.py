"""The pytest plugin: watches the A2A servers of a test and fails the test when they violate a rule.

A test is judged twice. When its body ends, it fails for what has been violated by then. When its
fixtures are gone, it is an error at teardown if that violated anything more, as a stale executor does
that outlives the body. What a finding concludes from the *absence* of a fact (a task that nobody
executes, a notification that nobody sent) counts only if it held at both times: what is missing at the
first may still come, and what the teardown itself stops was not abandoned.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, Final
from unittest import mock

import pytest

from a2a_fencing import allowlist
from a2a_fencing.allowlist import Allowance, Allowed, AllowListError
from a2a_fencing.checker import Finding, check, tell
from a2a_fencing.checker.report import Identity
from a2a_fencing.instrumentor import A2AFencingInstrumentor
from a2a_fencing.testing.capture import History, capture
from pytest_a2a_fencing import asks_for_it

_Wrapper = Generator[None, None, None]

_TITLE: Final = "a2a-fencing"
_MARKER: Final = "a2a_fencing"
_OPTIONS: Final = frozenset({"audit", "guard"})
_NOTHING_IS_LATE: Final = 0
"""A time of judging, ns, at which the absence of a fact means nothing yet."""


class _Watch:
    """One test under observation.

    Attributes:
        history: What its servers did.
    """

    def __init__(self, allowances: Sequence[Allowance], **options: Any) -> None:
        self._allowances = allowances
        self._told: set[Identity] = set()
        self._at_end_of_body: set[Identity] = set()
        self._open = ExitStack()
        # An application that instruments itself would take the facts away, to an endpoint.
        self._open.enter_context(mock.patch.object(A2AFencingInstrumentor, "_instrument"))
        self.history: History = self._open.enter_context(capture(**options))

    def body_ended(self) -> str:
        """What has been violated by now, told; empty for nothing."""
        self._at_end_of_body = {finding.identity for finding in check(self.history.facts).findings}
        return self._news(self._certain())

    def ended(self) -> str:
        """Ends the observation.

        Returns:
            What has been violated since the body ended, told; empty for nothing.
        """
        self._open.close()
        return self._news(self._certain() | self._at_end_of_body)

    def _certain(self) -> set[Identity]:
        findings = check(self.history.facts, _NOTHING_IS_LATE).findings
        return {finding.identity for finding in findings}

    def _news(self, count: Collection[Identity]) -> str:
        report, allowed = allowlist.apply(check(self.history.facts), self._allowances)
        new = [
            finding
            for finding in report.findings
            if finding.violates and finding.identity in count and finding.identity not in self._told
        ]
        self._told |= {finding.identity for finding in new}
        return "\n".join(self._lines(new, allowed)) if new else ""

    def _lines(self, findings: Sequence[Finding], allowed: Sequence[Allowed]) -> Iterator[str]:
        rules = dict.fromkeys(finding.rule for finding in findings)
        yield f"{_TITLE}: violated {', '.join(rules)}"
        for finding in findings:
            yield ""
            yield from self._told_step_by_step(finding)
        for one in allowed:
            yield ""
            yield f"allowed: {one.finding.rule} ({one.reason})"

    def _told_step_by_step(self, finding: Finding) -> Iterator[str]:
        task = finding.task.task_id
        yield f"{finding.rule} ({finding.severity}, {finding.certainty}) on task {task!r}"
        yield from (f"  {line}" for line in tell(finding, self.history.facts))


_WATCH: Final = pytest.StashKey[_Watch]()
_ALLOWANCES: Final = pytest.StashKey[tuple[Allowance, ...]]()


def pytest_configure(config: pytest.Config) -> None:
    """Reads the allow-list of the project under test."""
    path = allowlist.nearest(config.rootpath)
    try:
        config.stash[_ALLOWANCES] = allowlist.read(path) if path is not None else ()
    except AllowListError as error:
        raise pytest.UsageError(str(error)) from error


def watched(item: pytest.Item) -> History:
    """What the servers of a test do; begins to watch them unless that has begun."""
    watch = item.stash.get(_WATCH, None)
    if watch is None:
        allowances, options = _marked(item)
        watch = _Watch((*allowances, *item.config.stash[_ALLOWANCES]), **options)
        item.stash[_WATCH] = watch
    return watch.history


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_setup(item: pytest.Item) -> _Wrapper:
    """Begins to watch before any fixture is made."""
    if item.config.getoption(_MARKER) or asks_for_it(item):
        watched(item)
    return (yield)


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_call(item: pytest.Item) -> _Wrapper:
    """Fails a test whose body violated a rule."""
    return (yield from _judging(item, "call", _Watch.body_ended))


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_teardown(item: pytest.Item) -> _Wrapper:
    """Ends the observation; fails the teardown of a test that violated a rule since its body ended."""
    try:
        return (yield from _judging(item, "teardown", _Watch.ended))
    finally:
        if _WATCH in item.stash:
            del item.stash[_WATCH]


def _judging(item: pytest.Item, when: str, judge: Callable[[_Watch], str]) -> _Wrapper:
    """Runs a phase and fails it for what was violated; one that failed anyway is told so beside."""

    def violated() -> str:
        watch = item.stash.get(_WATCH, None)
        return judge(watch) if watch is not None else ""

    try:
        result = yield
    except BaseException:
        if text := violated():
            item.add_report_section(when, _TITLE, text)
        raise
    if text := violated():
        pytest.fail(text, pytrace=False)
    return result


def _marked(item: pytest.Item) -> tuple[list[Allowance], dict[str, Any]]:
    """What the markers of a test allow, all together, and how the nearest one has it watched."""
    allowances: list[Allowance] = []
    options: dict[str, Any] = {}
    complaint = ""
    for marker in item.iter_markers(_MARKER):
        given = dict(marker.kwargs)
        try:
            allowances += _allowances(given.pop("allow", ()))
        except AllowListError as error:
            complaint = str(error)
        if marker.args or not given.keys() <= _OPTIONS:
            complaint = "the marker takes the keywords allow, audit and guard"
        options = given | options
    if complaint:
        pytest.fail(f"@pytest.mark.{_MARKER}: {complaint}", pytrace=False)
    return allowances, options


def _allowances(allow: str | Iterable[str] | Mapping[str, str]) -> Iterator[Allowance]:
    """Of names of rules, or of names with the reason."""
    rules = [allow] if isinstance(allow, str) else allow
    reasons = rules if isinstance(rules, Mapping) else dict.fromkeys(rules, "by the test's marker")
    for rule, reason in reasons.items():
        yield Allowance(allowlist.rule_named(rule), reason)
