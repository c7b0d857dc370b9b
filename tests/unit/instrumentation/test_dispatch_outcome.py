"""What a finished client span says of its call, by the semantic conventions of each kind of client."""

from __future__ import annotations

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import SpanKind, Status, StatusCode

from a2a_fencing import conventions as c
from a2a_fencing.hooks.dispatch_outcome import outcome_of

_tracer = TracerProvider().get_tracer("client")


def span(attributes: dict, *, error: bool = False, exception: Exception | None = None):
    made = _tracer.start_span("call", kind=SpanKind.CLIENT, attributes=attributes)
    if exception is not None:
        made.record_exception(exception)
    if error:
        made.set_status(Status(StatusCode.ERROR))
    made.end()
    return made


class ConnectError(Exception):
    pass


class ReadTimeout(Exception):
    pass


HTTP = {"http.request.method": "POST"}
OLD_HTTP = {"http.method": "POST"}
GRPC = {"rpc.system": "grpc"}


@pytest.mark.parametrize(
    ("attributes", "error", "outcome", "error_type"),
    [
        ({**HTTP, "http.response.status_code": 200}, False, "accepted", None),
        ({**HTTP, "http.response.status_code": 202}, False, "accepted", None),
        ({**HTTP, "http.response.status_code": 307}, False, "accepted", None),
        ({**OLD_HTTP, "http.status_code": 201}, False, "accepted", None),
        ({**OLD_HTTP, "http.status_code": 412}, True, "rejected", "412"),
        ({**HTTP, "http.response.status_code": 409, "error.type": "409"}, True, "rejected", "409"),
        ({**HTTP, "http.response.status_code": 429}, True, "rejected", "429"),
        ({**HTTP, "http.response.status_code": 501}, True, "rejected", "501"),
        # The server may have done it before it failed, or before the gateway gave up on it.
        ({**HTTP, "http.response.status_code": 500}, True, "unknown", "500"),
        ({**HTTP, "http.response.status_code": 503}, True, "unknown", "503"),
        ({**HTTP, "http.response.status_code": 504}, True, "unknown", "504"),
        ({**HTTP, "error.type": "ConnectError"}, True, "failed", "ConnectError"),
        ({**HTTP, "error.type": "ClientConnectorError"}, True, "failed", "ClientConnectorError"),
        ({**HTTP, "error.type": "ReadTimeout"}, True, "unknown", "ReadTimeout"),
        # No status and no error: it was cancelled, which no client records.
        (HTTP, False, "unknown", None),
        ({**GRPC, "rpc.grpc.status_code": 0}, False, "accepted", None),
        ({**GRPC, "rpc.grpc.status_code": 9}, True, "rejected", "FAILED_PRECONDITION"),
        ({**GRPC, "rpc.grpc.status_code": 4}, True, "unknown", "DEADLINE_EXCEEDED"),
        ({**GRPC, "rpc.grpc.status_code": 14}, True, "unknown", "UNAVAILABLE"),
        ({**GRPC, "rpc.grpc.status_code": 99}, True, "unknown", "99"),
        ({"rpc.system.name": "grpc", "rpc.response.status_code": "OK"}, False, "accepted", None),
        (
            {"rpc.system.name": "grpc", "rpc.response.status_code": "ABORTED"},
            True,
            "rejected",
            "ABORTED",
        ),
        # MCP and others over JSON-RPC.
        ({"mcp.method.name": "tools/call"}, False, "accepted", None),
        (
            {"mcp.method.name": "tools/call", "rpc.response.status_code": "-32602"},
            True,
            "rejected",
            None,
        ),
        ({"mcp.method.name": "tools/call", "rpc.jsonrpc.error_code": -32603}, True, "unknown", None),
        ({"mcp.method.name": "tools/call", "error.type": "tool_error"}, True, "unknown", "tool_error"),
        # LLM clients and queues.
        ({"gen_ai.operation.name": "chat"}, False, "accepted", None),
        ({"gen_ai.operation.name": "chat", "error.type": "timeout"}, True, "unknown", "timeout"),
        (
            {"gen_ai.operation.name": "chat", "error.type": "openai.RateLimitError"},
            True,
            "rejected",
            "openai.RateLimitError",
        ),
        (
            {"gen_ai.operation.name": "chat", "error.type": "openai.InternalServerError"},
            True,
            "unknown",
            "openai.InternalServerError",
        ),
        ({"messaging.system": "kafka"}, False, "accepted", None),
        ({"messaging.system": "kafka"}, True, "unknown", None),
    ],
)
def test_by_what_the_span_carries(
    attributes: dict, error: bool, outcome: str, error_type: str | None
) -> None:
    assert outcome_of(span(attributes, error=error)) == (outcome, error_type)


def test_an_exception_tells_whether_the_request_ever_left() -> None:
    made = span(OLD_HTTP, error=True, exception=ConnectError())
    outcome, error_type = outcome_of(made)
    assert outcome == c.DISPATCH_FAILED
    assert error_type is not None
    assert error_type.endswith("ConnectError")
    assert outcome_of(span(OLD_HTTP, error=True, exception=ReadTimeout())).outcome == c.UNKNOWN


def test_a_cancelled_call_is_unknown_whatever_its_span_does_not_say() -> None:
    made = span({"gen_ai.operation.name": "chat"})
    assert outcome_of(made, interrupted=True) == (c.UNKNOWN, "CancelledError")
    answered = span({**HTTP, "http.response.status_code": 200})
    assert outcome_of(answered, interrupted=True).outcome == c.ACCEPTED
