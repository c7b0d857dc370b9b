"""The fence decides: who is let through, who is not, and what they are told."""

from __future__ import annotations

import json
from typing import Any

import pytest

from a2a_fencing import conventions as c
from a2a_fencing.facts import TaskKey
from a2a_fencing.fencing import (
    TOKEN_HEADER,
    Fence,
    FenceUnavailableError,
    FencingMiddleware,
    FencingToken,
    ForeignTokenError,
    ForgedTokenError,
    MemoryTokens,
    MissingTokenError,
    SupersededTokenError,
)
from a2a_fencing.scoped import scoped_from
from a2a_fencing.testing import capture

KEY = TaskKey("store", "owner", "task-1")


def token(value: int, task_id: str = "task-1", **about: Any) -> FencingToken:
    return FencingToken.of(TaskKey("store", "owner", task_id), value, **about)


def headers(value: int, task_id: str = "task-1", secret: str | None = None) -> dict[str, str]:
    return {TOKEN_HEADER: token(value, task_id).to_header(secret)}


def test_a_lower_token_is_refused_and_an_equal_or_higher_one_is_not() -> None:
    fence = Fence(MemoryTokens())
    assert fence.admit(headers(2)) == token(2)
    assert fence.admit(headers(2)) == token(2)
    assert fence.admit(headers(5)) == token(5)
    with pytest.raises(SupersededTokenError, match="token 2 of task 'task-1' is superseded by 5") as e:
        fence.admit(headers(2))
    assert (e.value.status, e.value.details) == (412, {"token": 2, "highest": 5})


def test_who_advances_fences_everybody_below_though_nobody_else_calls() -> None:
    fence = Fence(MemoryTokens())
    fence.advance(FencingToken.after(KEY, 3))
    with pytest.raises(SupersededTokenError):
        fence.admit(headers(3))
    assert fence.admit(headers(4)) is not None
    fence.advance(token(1))  # never goes back
    with pytest.raises(SupersededTokenError):
        fence.admit(headers(3))


def test_tokens_of_one_task_say_nothing_of_another() -> None:
    fence = Fence(MemoryTokens())
    fence.admit(headers(9, "task-2"))
    assert fence.admit(headers(1)) is not None
    with pytest.raises(ForeignTokenError, match="token is task 'task-2''s, the request is about task"):
        fence.admit(headers(9, "task-2"), task_id="task-1")
    assert fence.admit(headers(1), task_id="task-1") is not None


def test_a_request_without_a_token() -> None:
    with pytest.raises(MissingTokenError) as e:
        Fence(MemoryTokens()).admit({"content-type": "text/plain"})
    assert e.value.status == 428
    assert Fence(MemoryTokens(), required=False).admit({}) is None


def test_a_forged_token_neither_passes_nor_moves_the_fence() -> None:
    fence = Fence(MemoryTokens(), secret="s")
    with pytest.raises(ForgedTokenError) as e:
        fence.admit(headers(999))
    assert e.value.status == 403
    assert fence.admit(headers(1, secret="s")) is not None


def test_header_names_have_no_case() -> None:
    header = token(1).to_header()
    assert Fence(MemoryTokens()).admit({TOKEN_HEADER.lower(): header}) is not None
    assert Fence(MemoryTokens()).admit({TOKEN_HEADER.upper(): header}) is not None


def test_what_it_decides_is_on_record_and_names_the_dispatch() -> None:
    fence = Fence(MemoryTokens(), name="payments")
    with capture() as history:
        fence.advance(token(2))
        carried = token(1, dispatch_id="replica:7", attempt=3).to_header()
        with pytest.raises(SupersededTokenError):
            fence.admit({TOKEN_HEADER: carried})
        fence.admit(headers(2))
    refused, admitted = history.of(c.DISPATCH)
    assert (refused.outcome, refused.error_type) == (c.DISPATCH_REJECTED, "SupersededTokenError")
    assert (refused.dispatch_id, refused.attempt) == ("replica:7", 3)
    assert (admitted.outcome, admitted.name, admitted.token) == (c.ACCEPTED, "payments", 2)
    assert (admitted.reason, refused.reason) == (c.ADMITTED, None)
    assert {(fact.phase, fact.origin) for fact in history.facts} == {(c.ENDED, c.FROM_RESOURCE)}
    # The task is named, but not whose it is.
    assert {fact.task for fact in history.facts} == {scoped_from(KEY)}
    assert history.check().findings == ()


class Unreachable:
    def raise_to(self, token: FencingToken) -> int:
        raise FenceUnavailableError("the highest fencing tokens cannot be reached")

    async def raise_to_async(self, token: FencingToken) -> int:
        return self.raise_to(token)


async def test_nobody_is_let_through_while_the_tokens_cannot_be_read(
    caplog: pytest.LogCaptureFixture,
) -> None:
    fence = Fence(Unreachable(), name="payments")
    with pytest.raises(FenceUnavailableError) as e:
        fence.admit(headers(1))
    assert e.value.status == 503
    with pytest.raises(FenceUnavailableError):
        await fence.admit_async(headers(1))
    with pytest.raises(FenceUnavailableError):
        await fence.advance_async(token(2))
    assert "payments: the highest fencing tokens cannot be reached" in caplog.text


# --- in front of an ASGI application ---


async def application(scope, receive, send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"charged"})


async def asked(
    middleware: FencingMiddleware,
    *given: dict[str, str],
    method: str = "POST",
    path: str = "/charge",
    kind: str = "http",
) -> tuple[int, dict[str, str], Any]:
    sent = []

    async def send(message):
        sent.append(message)

    pairs = [(k.lower().encode(), v.encode()) for one in given for k, v in one.items()]
    scope = {"type": kind, "method": method, "path": path, "headers": pairs}
    await middleware(scope, None, send)
    start, body = sent
    shown = {k.decode(): v.decode() for k, v in start["headers"]}
    is_json = shown.get("content-type") == "application/problem+json"
    return start["status"], shown, json.loads(body["body"]) if is_json else body["body"]


async def test_the_application_sees_only_who_is_let_through() -> None:
    app = FencingMiddleware(application, Fence(MemoryTokens()))
    assert await asked(app, headers(2)) == (200, {}, b"charged")
    status, _, problem = await asked(app, headers(1))
    assert status == 412
    assert problem == {
        "title": "superseded",
        "status": 412,
        "detail": "fencing token 1 of task 'task-1' is superseded by 2: somebody else has finished the"
        " task or acts on it now",
        "token": 1,
        "highest": 2,
    }
    assert (await asked(app))[0] == 428
    assert (await asked(app, {TOKEN_HEADER: "nonsense"}))[0] == 400
    assert (await asked(app, headers(3), headers(2)))[0] == 400
    assert (await asked(app, headers(3)))[0] == 200
    assert (await asked(FencingMiddleware(application, Fence(Unreachable())), headers(3)))[0] == 503


def answering(status: int | None, **headers: str) -> Any:
    """An application that gives this answer; None: an exception instead of one."""

    async def answer(scope, receive, send) -> None:
        if status is None:
            raise LookupError
        pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": status, "headers": pairs})
        await send({"type": "http.response.body", "body": b""})

    return answer


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        (200, c.ACCEPTED),
        (402, c.DISPATCH_REJECTED),
        (501, c.DISPATCH_REJECTED),
        (503, c.UNKNOWN),
        (None, c.UNKNOWN),
    ],
)
async def test_on_record_is_what_the_application_answered(status: int | None, outcome: str) -> None:
    app = FencingMiddleware(answering(status), Fence(MemoryTokens()))
    with capture() as history:
        if status is None:
            with pytest.raises(LookupError):
                await asked(app, headers(1))
        else:
            await asked(app, headers(1))
    (fact,) = history.of(c.DISPATCH)
    assert (fact.outcome, fact.reason) == (outcome, None)


async def test_an_answer_that_repeats_an_earlier_one_is_on_record_as_such() -> None:
    repeating = answering(200, **{"Idempotent-Replayed": "true"})
    with capture() as history:
        await asked(FencingMiddleware(repeating, Fence(MemoryTokens())), headers(1))
        await asked(
            FencingMiddleware(answering(200, **{"Idempotent-Replayed": "false"}), Fence(MemoryTokens())),
            headers(1),
        )
    assert [fact.reason for fact in history.of(c.DISPATCH)] == [c.REPLAYED, None]


async def test_taking_the_right_away_is_no_dispatch() -> None:
    app = FencingMiddleware(application, Fence(MemoryTokens()), advance_path="/advance")
    with capture() as history:
        await asked(app, headers(3), path="/advance")
    assert history.of(c.DISPATCH) == []


async def test_what_changes_nothing_passes() -> None:
    app = FencingMiddleware(application, Fence(MemoryTokens()))
    for method in ("GET", "HEAD", "OPTIONS"):
        assert (await asked(app, method=method))[0] == 200
    for method in ("PUT", "PATCH", "DELETE"):
        assert (await asked(app, method=method))[0] == 428
    assert (await asked(app, kind="websocket"))[0] == 200


async def test_whoever_takes_over_can_advance_from_elsewhere() -> None:
    app = FencingMiddleware(application, Fence(MemoryTokens()), advance_path="/advance")
    after = {TOKEN_HEADER: FencingToken.after(KEY, 3).to_header()}
    assert (await asked(app, after, path="/advance"))[0] == 204
    assert (await asked(app, headers(3)))[0] == 412
    assert (await asked(app, headers(3), path="/advance"))[0] == 412
    assert (await asked(app, path="/advance"))[0] == 428
    lenient = FencingMiddleware(
        application, Fence(MemoryTokens(), required=False), advance_path="/advance"
    )
    assert (await asked(lenient, path="/advance"))[0] == 428
    assert (await asked(lenient))[0] == 200


async def test_a_path_that_names_the_task_takes_that_tasks_token_only() -> None:
    app = FencingMiddleware(
        application, Fence(MemoryTokens()), task_of=lambda scope: scope["path"].rpartition("/")[2]
    )
    assert (await asked(app, headers(1), path="/tasks/task-1"))[0] == 200
    assert (await asked(app, headers(1), path="/tasks/task-2"))[0] == 403
