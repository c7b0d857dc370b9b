"""Dispatches in the user's words: facts, headers, durability, and who may act at all."""

from __future__ import annotations

import asyncio
import logging
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from a2a.server.tasks.inmemory_task_store import InMemoryTaskStore
from a2a.types.a2a_pb2 import Task, TaskState

import a2a_fencing
from a2a_fencing import conventions as c
from a2a_fencing import dispatch as _function  # noqa: F401 - the name is the function's
from a2a_fencing.dispatch import (
    DispatchNotDurableError,
    DispatchOutsideExecutorError,
    StaleExecutorError,
    current,
)
from a2a_fencing.fencing import IDEMPOTENCY_HEADER, TOKEN_HEADER, FencingToken
from a2a_fencing.hooks.tasks import event_state
from a2a_fencing.instrumentor import A2AFencingInstrumentor
from a2a_fencing.testing import InMemoryVersionedTaskStore, capture
from support.agents import CALL, between, run, serving
from support.cluster import cluster, idle, message, status, submitted, until
from support.databases import database
from support.otlp_sink import otlp_sink


def told(history) -> list[tuple]:
    return [(f.phase, f.attempt, f.outcome, f.error_type) for f in history.of(c.DISPATCH)]


async def ended(step) -> tuple:
    """Outcome and error type of the one dispatch that `step` makes."""
    with capture() as history:
        await run(between(step))
    assert history.check().ok
    start, end = history.of(c.DISPATCH)
    assert (start.phase, end.phase) == (c.STARTED, c.ENDED)
    return end.outcome, end.error_type


# --- outcomes ---


@pytest.mark.parametrize(
    ("word", "outcome"),
    [
        ("accepted", c.ACCEPTED),
        ("rejected", c.DISPATCH_REJECTED),
        ("failed", c.DISPATCH_FAILED),
        ("unknown", c.UNKNOWN),
        (None, c.UNKNOWN),
    ],
)
async def test_the_outcome_is_what_was_said_and_unknown_without_a_word(word, outcome) -> None:
    async def step(context):
        async with a2a_fencing.dispatch("charge-card", key="order-17") as d:
            if word:
                getattr(d, word)()

    assert await ended(step) == (outcome, None)


async def test_an_exception_makes_it_unknown_unless_something_was_said() -> None:
    async def silent(context):
        with pytest.raises(LookupError):
            async with a2a_fencing.dispatch("charge-card"):
                raise LookupError

    async def said(context):
        with pytest.raises(LookupError):  # noqa: PT012 - the block is what is tested
            async with a2a_fencing.dispatch("charge-card") as d:
                d.accepted()
                raise LookupError

    assert await ended(silent) == (c.UNKNOWN, "LookupError")
    assert await ended(said) == (c.ACCEPTED, "LookupError")


async def test_a_cancellation_makes_it_unknown() -> None:
    async def step(context):
        async def act():
            async with a2a_fencing.dispatch("charge-card"):
                inside.set()
                await asyncio.Event().wait()

        inside = asyncio.Event()
        acting = asyncio.create_task(act())
        await inside.wait()
        acting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await acting

    assert await ended(step) == (c.UNKNOWN, "CancelledError")


async def test_a_fact_says_what_the_executor_believed() -> None:
    async def work(context, queue):
        await queue.enqueue_event(submitted(context))
        await queue.enqueue_event(status(context, "WORKING"))

        async def stored():
            found = await store.get(context.task_id, CALL)
            return found is not None and found.version._value == 2

        await until(stored)
        with a2a_fencing.dispatch("charge-card", key="order-17") as d:
            d.accepted()
        await queue.enqueue_event(status(context, "COMPLETED"))

    store = InMemoryVersionedTaskStore()
    with capture() as history:
        answer = await run(work, store)
    start, end = history.of(c.DISPATCH)
    execution = history.of(c.EXECUTION)[0]
    for fact in (start, end):
        assert fact.task is not None
        assert fact.task.task_id == answer.id
        assert (fact.name, fact.key, fact.attempt, fact.token) == ("charge-card", "order-17", 1, 1)
        assert fact.execution_id == execution.id
        assert fact.dispatch_id == start.id
        assert fact.unparented is None
    assert (start.state, start.version) == (c.WORKING, 2)


async def test_attempts_of_one_dispatch_are_counted() -> None:
    async def step(context):
        async with a2a_fencing.dispatch("charge-card", key="1") as d:
            assert d.attempt == 1
            first = d.headers
            d.failed()
            d.retry()
            assert d.attempt == 2
            d.retry()
            second = d.headers
            d.accepted()
        assert first[IDEMPOTENCY_HEADER] == second[IDEMPOTENCY_HEADER]
        tokens = [FencingToken.from_header(h[TOKEN_HEADER]) for h in (first, second)]
        assert [token.attempt for token in tokens] == [1, 3]
        assert tokens[0].dispatch_id == tokens[1].dispatch_id

    with capture() as history:
        await run(between(step))
    assert told(history) == [
        (c.STARTED, 1, None, None),
        (c.ENDED, 1, c.DISPATCH_FAILED, None),
        (c.STARTED, 2, None, None),
        (c.ENDED, 2, c.UNKNOWN, None),
        (c.STARTED, 3, None, None),
        (c.ENDED, 3, c.ACCEPTED, None),
    ]
    assert len({fact.dispatch_id for fact in history.of(c.DISPATCH)}) == 1
    assert history.check().ok


async def test_it_is_entered_once() -> None:
    async def step(context):
        d = a2a_fencing.dispatch("charge-card")
        async with d:
            pass
        with pytest.raises(RuntimeError, match="entered once"):
            await d.__aenter__()

    await ended(step)


# --- shapes ---


async def test_a_decorated_function_is_a_dispatch_per_call() -> None:
    @a2a_fencing.dispatch("charge-card", key=lambda order, amount=0: f"order-{order}")
    async def charge(order: int, amount: int = 0) -> int:
        """Charges."""
        current().accepted()
        assert current().key == f"order-{order}"
        return amount

    @a2a_fencing.dispatch("notify")
    def notify(text: str) -> str:
        return text.upper()

    async def step(context):
        assert await asyncio.gather(charge(1, amount=5), charge(2, amount=7)) == [5, 7]
        assert notify("done") == "DONE"

    assert charge.__doc__ == "Charges."
    with capture() as history:
        await run(between(step))
    ends = [fact for fact in history.of(c.DISPATCH) if fact.phase == c.ENDED]
    assert [(f.name, f.key, f.outcome) for f in ends] == [
        ("charge-card", "order-1", c.ACCEPTED),
        ("charge-card", "order-2", c.ACCEPTED),
        ("notify", None, c.UNKNOWN),
    ]
    assert history.check().ok


async def test_it_works_in_whatever_the_executor_starts() -> None:
    def act(key: str) -> None:
        with a2a_fencing.dispatch("charge-card", key=key) as d:
            assert TOKEN_HEADER in d.headers
            d.accepted()

    async def child(key: str) -> None:
        act(key)

    async def step(context):
        await asyncio.gather(child("gather-1"), child("gather-2"))
        await asyncio.create_task(child("task"))
        await asyncio.to_thread(act, "to_thread")
        thread = threading.Thread(target=act, args=("thread",))
        thread.start()
        await asyncio.to_thread(thread.join)
        timer = threading.Timer(0, act, args=("timer",))
        timer.start()
        await asyncio.to_thread(timer.join)
        with ThreadPoolExecutor(1) as pool:
            await asyncio.wrap_future(pool.submit(act, "pool"))
            await asyncio.get_running_loop().run_in_executor(pool, act, "run_in_executor")

    with capture() as history:
        await run(between(step))
    starts = [fact for fact in history.of(c.DISPATCH) if fact.phase == c.STARTED]
    assert {fact.key for fact in starts} == {
        "gather-1",
        "gather-2",
        "task",
        "to_thread",
        "thread",
        "timer",
        "pool",
        "run_in_executor",
    }
    assert {fact.execution_id for fact in starts} == {history.of(c.EXECUTION)[0].id}


async def test_a_pools_thread_does_not_stay_with_the_execution_that_started_it() -> None:
    pool = ThreadPoolExecutor(1)
    outcome = []

    def act() -> None:
        try:
            with a2a_fencing.dispatch("charge-card"):
                pass
        except DispatchOutsideExecutorError as error:
            outcome.append(error)

    async def step(context):
        await asyncio.wrap_future(pool.submit(act))

    with capture() as history:
        await run(between(step))
        pool.submit(act).result()
    pool.shutdown()
    assert len(history.of(c.DISPATCH)) == 2
    assert len(outcome) == 1


def test_the_standard_library_is_left_as_it_was() -> None:
    before = threading.Thread.__dict__["start"], ThreadPoolExecutor.__dict__["submit"]
    with capture():
        assert threading.Thread.__dict__["start"] is not before[0]
    after = threading.Thread.__dict__["start"], ThreadPoolExecutor.__dict__["submit"]
    assert after[0] is before[0]
    assert after[1] is before[1]


# --- where there is no execution ---


async def test_outside_an_executor_it_says_what_to_do() -> None:
    with capture() as history:
        with pytest.raises(
            DispatchOutsideExecutorError, match=r"'charge-card' is not inside Agent.*context="
        ):
            async with a2a_fencing.dispatch("charge-card"):
                pytest.fail("must not be entered")
        with pytest.raises(DispatchOutsideExecutorError, match="no dispatch here"):
            current()
    assert history.facts == []


@pytest.mark.parametrize("way", ["with", "async with", "function", "async function"])
async def test_outside_an_executor_nothing_runs_however_it_is_written(way: str) -> None:
    ran = []

    @a2a_fencing.dispatch("charge-card")
    def charges() -> None:
        ran.append(way)

    @a2a_fencing.dispatch("charge-card")
    async def charges_later() -> None:
        ran.append(way)

    with capture(), pytest.raises(DispatchOutsideExecutorError, match="move it there"):  # noqa: PT012
        if way == "with":
            with a2a_fencing.dispatch("charge-card"):
                ran.append(way)
        elif way == "async with":
            async with a2a_fencing.dispatch("charge-card"):
                ran.append(way)
        elif way == "function":
            charges()
        else:
            await charges_later()
    assert ran == []


async def test_a_request_context_brings_the_execution_along() -> None:
    asked: asyncio.Queue = asyncio.Queue()

    async def worker() -> None:
        context, done = await asked.get()
        async with a2a_fencing.dispatch("charge-card", context=context) as d:
            assert TOKEN_HEADER in d.headers
            d.accepted()
        done.set()

    async def step(context):
        done = asyncio.Event()
        await asked.put((context, done))
        await done.wait()

    working = asyncio.create_task(worker())  # not the executor's child
    assert await ended(step) == (c.ACCEPTED, None)
    await working


async def test_where_nothing_is_instrumented_it_changes_nothing() -> None:
    async with a2a_fencing.dispatch("charge-card", key="1") as d:
        assert d.headers == {}
        assert (d.token, d.attempt) == (None, 0)
        d.accepted()
        d.retry()
        await d.verify()
    with pytest.raises(DispatchNotDurableError, match=r"call a2a_fencing\.instrument\(\)"):
        async with a2a_fencing.dispatch("charge-card", durable=True):
            pytest.fail("must not be entered")


# --- tokens and keys ---


async def test_the_token_grows_from_execution_to_execution_and_the_key_stays(tmp_path) -> None:
    seen: list[dict[str, str]] = []

    async def asks(context, queue):
        if context.current_task is None:
            await queue.enqueue_event(submitted(context))
        for _ in range(2):
            with a2a_fencing.dispatch("charge-card", key="order-17") as d:
                seen.append(d.headers)
            await queue.enqueue_event(status(context, "WORKING"))
        await queue.enqueue_event(status(context, "INPUT_REQUIRED"))

    with database("sqlite", tmp_path) as db, capture():
        async with cluster(db.dsn, asks, asks) as (a, b):
            first = await a.handler.on_message_send(message(), CALL)
            about = {"task_id": first.id, "context_id": first.context_id}
            await b.handler.on_message_send(message(**about), CALL)
    tokens = [FencingToken.from_header(headers[TOKEN_HEADER]) for headers in seen]
    assert len(seen) == 4
    assert [token.value for token in tokens[:2]] == [1, 1]
    assert tokens[2].value == tokens[3].value > 1
    assert len({token.subject for token in tokens}) == 1
    assert len({headers[IDEMPOTENCY_HEADER] for headers in seen}) == 1


async def test_a_store_without_order_gives_no_token_and_that_is_said_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    monkeypatch.setattr(sys.modules["a2a_fencing.dispatch"], "_complained", False)

    async def step(context):
        for _ in range(2):
            with a2a_fencing.dispatch("charge-card", key="1") as d:
                assert list(d.headers) == [IDEMPOTENCY_HEADER]
                assert d.token is None

    with capture() as history, caplog.at_level(logging.WARNING, "a2a_fencing"):
        await run(between(step), InMemoryTaskStore())
    assert len([r for r in caplog.records if "no fencing token" in r.message]) == 1
    assert history.of(c.EXECUTION)[0].token is None


async def test_tokens_are_signed_with_the_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_LOGS_EXPORTER", "none")
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "none")
    headers = {}

    async def step(context):
        with a2a_fencing.dispatch("charge-card") as d:
            headers.update(d.headers)

    a2a_fencing.instrument(token_secret="s3cret")
    try:
        await run(between(step))
    finally:
        a2a_fencing.uninstrument()
    assert FencingToken.from_header(headers[TOKEN_HEADER], "s3cret").value == 1


# --- durable ---


async def test_a_durable_attempt_is_acknowledged_before_the_block_runs() -> None:
    on_record = []

    async def step(context):
        async with a2a_fencing.dispatch("charge-card", key="1", durable=True) as d:
            on_record.extend(sink.facts_in_logs())
            d.accepted()
        with a2a_fencing.dispatch("charge-card", key="2", durable=True) as d:
            on_record.extend(sink.facts_in_logs())

    with otlp_sink() as sink:
        a2a_fencing.instrument(endpoint=sink.url)
        try:
            await run(between(step))
        finally:
            a2a_fencing.uninstrument()
    keys = [fact.key for fact in on_record if fact.kind == c.DISPATCH and fact.phase == c.STARTED]
    assert keys == ["1", "1", "2"]


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (lambda path, before: (503, {"Retry-After": "1"}), "did not acknowledge it within 0.3 s"),
        (lambda path, before: (400, {}), "did not take it"),
        (lambda path, before: (404 if path == "/v1/logs" else 200, {}), "takes no log events"),
    ],
)
async def test_what_cannot_be_put_on_record_is_not_dispatched(answer, problem: str) -> None:
    errors = []
    facts = []

    async def step(context):
        for kind in ("async", "sync"):
            d = a2a_fencing.dispatch("charge-card", durable=True, timeout_s=0.3)
            try:
                if kind == "async":
                    async with d:
                        pytest.fail("must not be entered")
                else:
                    with d:
                        pytest.fail("must not be entered")
            except DispatchNotDurableError as error:
                errors.append(str(error))

    with otlp_sink(answer) as sink:
        a2a_fencing.instrument(endpoint=sink.url)
        try:
            recorder = A2AFencingInstrumentor()._run.recorder
            recorder._sinks += (lambda fact, span: facts.append(fact),)
            await run(between(step))
        finally:
            a2a_fencing.uninstrument()
    assert len(errors) == 2
    assert all(problem in error and "nothing was dispatched" in error for error in errors)
    ends = [fact for fact in facts if fact.kind == c.DISPATCH and fact.phase == c.ENDED]
    assert [(f.outcome, f.error_type) for f in ends] == [
        (c.DISPATCH_FAILED, "DispatchNotDurableError")
    ] * 2


async def test_whoever_is_cancelled_while_waiting_has_dispatched_nothing() -> None:
    facts = []

    async def step(context):
        async def act():
            async with a2a_fencing.dispatch("charge-card", durable=True, timeout_s=30):
                pytest.fail("must not be entered")

        acting = asyncio.create_task(act())

        async def began():
            return any(fact.kind == c.DISPATCH for fact in facts)

        await until(began)
        acting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await acting
        answering.set()

    answering = threading.Event()

    def slow(path: str, before: int):
        answering.wait(10)
        return 200, {}

    with otlp_sink(slow) as sink:
        a2a_fencing.instrument(endpoint=sink.url)
        try:
            recorder = A2AFencingInstrumentor()._run.recorder
            recorder._sinks += (lambda fact, span: facts.append(fact),)
            await run(between(step))
        finally:
            a2a_fencing.uninstrument()
    (end,) = (fact for fact in facts if fact.kind == c.DISPATCH and fact.phase == c.ENDED)
    assert (end.outcome, end.error_type) == (c.DISPATCH_FAILED, "CancelledError")


async def test_the_event_loop_runs_on_while_a_durable_attempt_waits() -> None:
    answering = threading.Event()
    ticks = 0

    def slow(path: str, before: int):
        answering.wait(10)
        return 200, {}

    async def step(context):
        async def tick():
            nonlocal ticks
            while ticks < 20:
                await asyncio.sleep(0)
                ticks += 1
            answering.set()

        ticking = asyncio.create_task(tick())
        async with a2a_fencing.dispatch("charge-card", durable=True):
            assert ticks == 20
        await ticking

    with otlp_sink(slow) as sink:
        a2a_fencing.instrument(endpoint=sink.url)
        try:
            await run(between(step))
        finally:
            a2a_fencing.uninstrument()
    assert ticks == 20


# --- verify ---


async def cancelled_elsewhere(a, b, task_id) -> None:
    await b.cancel(task_id)


async def written_elsewhere(a, b, task_id) -> None:
    found = await b.stored(task_id)
    await b.store.save(found.task, event=None, prev=None, prev_version=found.version, context=CALL)


async def deleted_elsewhere(a, b, task_id) -> None:
    await b.store.delete(task_id, CALL)


async def nothing(a, b, task_id) -> None:
    pass


@pytest.mark.parametrize(
    ("meanwhile", "problem"),
    [
        (cancelled_elsewhere, "is CANCELED"),
        (written_elsewhere, "is at version 3, which this execution did not write"),
        (deleted_elsewhere, "is not stored any more"),
        (nothing, None),
    ],
)
async def test_verify_refuses_who_has_lost_the_right_to_act(tmp_path, meanwhile, problem) -> None:
    errors: list[str | None] = []
    ids: list[str] = []
    go_on = asyncio.Event()

    async def work(context, queue):
        await queue.enqueue_event(submitted(context))
        await queue.enqueue_event(status(context, "WORKING"))
        ids.append(context.task_id)
        await go_on.wait()
        async with a2a_fencing.dispatch("charge-card") as d:
            try:
                await d.verify()
                errors.append(None)
            except StaleExecutorError as error:
                errors.append(str(error))

    with database("sqlite", tmp_path) as db, capture() as history:
        async with cluster(db.dsn, work, idle) as (a, b):
            request = asyncio.create_task(a.handler.on_message_send(message(), CALL))

            async def working():
                found = await b.stored(ids[0]) if ids else None
                return found is not None and found.version._value == 2

            async def asked():
                return bool(errors)

            await until(working)
            await meanwhile(a, b, ids[0])
            go_on.set()

            await until(asked)
            request.cancel()
            await asyncio.wait([request])
    (error,) = errors
    assert (problem in error) if problem else (error is None)
    if meanwhile is not deleted_elsewhere:
        assert [fact for fact in history.of(c.READ) if fact.origin == c.VERIFY]


async def test_verify_does_not_take_its_own_writes_for_somebody_elses() -> None:
    """The store has committed, but the save has not returned: the version is new, and ours."""

    class Slow(InMemoryVersionedTaskStore):
        async def save(self, *args, **kwargs):
            version = await super().save(*args, **kwargs)
            if version._value == 2:
                committed.set()
                await asyncio.sleep(0.05)
            return version

    committed = asyncio.Event()

    async def work(context, queue):
        await queue.enqueue_event(submitted(context))
        await queue.enqueue_event(status(context, "WORKING"))
        await committed.wait()
        async with a2a_fencing.dispatch("charge-card") as d:
            await d.verify()
            d.accepted()
        await queue.enqueue_event(status(context, "COMPLETED"))

    with capture() as history:
        done = await run(work, Slow())
    assert event_state(done) == c.COMPLETED
    assert told(history)[-1] == (c.ENDED, 1, c.ACCEPTED, None)


# --- the rules, fed by real facts ---


async def test_two_executions_that_both_charge_are_a_double_effect(tmp_path) -> None:
    async def charges(context, queue):
        if context.current_task is None:
            await queue.enqueue_event(submitted(context))
        with a2a_fencing.dispatch("charge-card", key="order-17") as d:
            d.accepted()
        await queue.enqueue_event(status(context, "INPUT_REQUIRED"))

    with database("sqlite", tmp_path) as db, capture() as history:
        async with cluster(db.dsn, charges, charges) as (a, b):
            first = await a.handler.on_message_send(message(), CALL)
            about = {"task_id": first.id, "context_id": first.context_id}
            await b.handler.on_message_send(message(**about), CALL)
    assert [finding.rule for finding in history.check().findings] == [c.DOUBLE_EFFECT]


async def test_a_dispatch_after_the_end_is_found_and_worse_when_it_was_accepted(tmp_path) -> None:
    for word, severity in (("accepted", c.CRITICAL), ("rejected", c.WARNING)):
        nodes = []

        async def work(context, queue, word=word, nodes=nodes):
            await queue.enqueue_event(submitted(context))

            async def stored():
                return await nodes[1].stored(context.task_id) is not None

            await until(stored)
            await nodes[1].cancel(context.task_id)
            with a2a_fencing.dispatch("charge-card") as d:
                getattr(d, word)()

        folder = tmp_path / word
        folder.mkdir()
        with database("sqlite", folder) as db, capture(guard=True) as history:
            async with cluster(db.dsn, work, idle) as found:
                nodes += found
                request = asyncio.create_task(nodes[0].handler.on_message_send(message(), CALL))

                async def dispatched(history=history):
                    return len(history.of(c.DISPATCH)) == 2

                await until(dispatched)
                request.cancel()
                await asyncio.wait([request])
        (finding,) = (f for f in history.check().findings if f.rule == c.DISPATCH_AFTER_TERMINAL)
        assert (finding.severity, finding.certainty) == (severity, c.PROVEN)


async def test_an_unfinished_task_of_one_turn_is_no_finding() -> None:
    async def step(context):
        with a2a_fencing.dispatch("charge-card", key="1") as d:
            d.accepted()

    with capture() as history:
        answer = await run(between(step))
    assert isinstance(answer, Task)
    assert answer.status.state == TaskState.TASK_STATE_COMPLETED
    assert history.check().findings == ()


async def test_dispatching_is_no_reason_to_hold_a_task_in_memory() -> None:
    import gc
    import weakref

    kept: list[weakref.ref] = []

    async def step(context):
        kept.append(weakref.ref(context))
        with a2a_fencing.dispatch("charge-card"):
            pass

    with capture():
        handler = serving(between(step))
        for _ in range(3):
            await handler.on_message_send(message(), CALL)
        await handler.aclose()
        del handler
        gc.collect()
        assert [ref() for ref in kept] == [None, None, None]
