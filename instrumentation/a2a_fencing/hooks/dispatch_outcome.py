"""What a finished CLIENT or PRODUCER span says of its call, by OpenTelemetry's semantic conventions.

Where the receiver may have done what it was asked and only its answer got lost, the outcome is unknown:
a timeout, a dropped connection, a cancellation, an error of the server. It is never guessed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import StatusCode

from a2a_fencing import conventions as c


class CallOutcome(NamedTuple):
    """How a call ended.

    Attributes:
        outcome: One of `conventions.DISPATCH_OUTCOMES`.
        error_type: What went wrong, or None.
    """

    outcome: str
    error_type: str | None = None


# Attribute names of older and newer conventions.
_HTTP_STATUS: Final = ("http.response.status_code", "http.status_code")
_GRPC_STATUS: Final = ("rpc.grpc.status_code", "rpc.response.status_code")
_JSON_RPC_ERROR: Final = ("rpc.jsonrpc.error_code", "rpc.response.status_code")

_NOT_DONE_HTTP: Final = frozenset({501, 505})
"""5xx that say that the request was not even tried."""

_GRPC_NAMES: Final = (
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
)
_UNDECIDED_GRPC: Final = frozenset(
    {"CANCELLED", "UNKNOWN", "DEADLINE_EXCEEDED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS"}
)

_REFUSED_JSON_RPC: Final = frozenset({-32700, -32600, -32601, -32602})
"""Parse error, invalid request, no such method, invalid parameters."""

_NEVER_SENT: Final = frozenset(
    {
        "ConnectError",
        "ConnectTimeout",
        "ConnectTimeoutError",
        "ConnectionRefusedError",
        "ConnectionTimeoutError",
        "ClientConnectorCertificateError",
        "ClientConnectorDNSError",
        "ClientConnectorError",
        "ClientConnectorSSLError",
        "InvalidURL",
        "NameResolutionError",
        "NewConnectionError",
        "PoolTimeout",
        "UnsupportedProtocol",
        "gaierror",
    }
)
"""Exceptions, by the last part of their name, that clients raise before a request leaves."""

_REFUSED: Final = frozenset(
    {
        "AuthenticationError",
        "BadRequestError",
        "ConflictError",
        "NotFoundError",
        "PermissionDeniedError",
        "RateLimitError",
        "UnprocessableEntityError",
    }
)
"""Exceptions, by the last part of their name, that LLM clients raise for an answer of 4xx; their own
spans say no status.
"""


def outcome_of(span: ReadableSpan, *, interrupted: bool = False) -> CallOutcome:
    """What the call came to.

    Args:
        span: The finished span.
        interrupted: Whether it ended because its caller was cancelled.
    """
    attributes = span.attributes or {}
    error = _error_type(span, attributes)
    http = _first(attributes, _HTTP_STATUS)
    if isinstance(http, int):
        return _http(http, error)
    if attributes.get("rpc.system", attributes.get("rpc.system.name")) == "grpc":
        grpc = _first(attributes, _GRPC_STATUS)
        if grpc is not None:
            return _grpc(grpc, error)
    if span.status.status_code is not StatusCode.ERROR and not interrupted and error is None:
        # Only a client that knows of status codes leaves without one when it got no answer.
        spoke_http = any(name.startswith("http.") for name in attributes)
        return CallOutcome(c.UNKNOWN if spoke_http else c.ACCEPTED)
    name = (error or "").rpartition(".")[2]
    if name in _NEVER_SENT:
        return CallOutcome(c.DISPATCH_FAILED, error)
    if name in _REFUSED:
        return CallOutcome(c.DISPATCH_REJECTED, error)
    if _number(_first(attributes, _JSON_RPC_ERROR)) in _REFUSED_JSON_RPC:
        return CallOutcome(c.DISPATCH_REJECTED, error)
    return CallOutcome(c.UNKNOWN, error or ("CancelledError" if interrupted else None))


def http_outcome(status: int) -> str:
    """What an HTTP status says of the request."""
    if status < 400:
        return c.ACCEPTED
    return c.DISPATCH_REJECTED if status < 500 or status in _NOT_DONE_HTTP else c.UNKNOWN


def _http(status: int, error: str | None) -> CallOutcome:
    outcome = http_outcome(status)
    return CallOutcome(outcome, None if outcome == c.ACCEPTED else error or str(status))


def _grpc(status: Any, error: str | None) -> CallOutcome:
    number = _number(status)
    known = number is not None and 0 <= number < len(_GRPC_NAMES)
    name = _GRPC_NAMES[number] if known and number is not None else str(status)
    if name == "OK":
        return CallOutcome(c.ACCEPTED)
    undecided = name in _UNDECIDED_GRPC or name not in _GRPC_NAMES
    return CallOutcome(c.UNKNOWN if undecided else c.DISPATCH_REJECTED, error or name)


def _error_type(span: ReadableSpan, attributes: Mapping[str, Any]) -> str | None:
    """The exception's or error's type, from the attribute or the recorded exception; never its text."""
    given = attributes.get(c.ERROR_TYPE)
    if given is None:
        for event in reversed(span.events):
            if event.name == "exception" and event.attributes:
                given = event.attributes.get("exception.type")
                break
    return str(given) if given is not None else None


def _first(attributes: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((attributes[name] for name in names if name in attributes), None)


def _number(value: Any) -> int | None:
    try:
        return int(value)
    except (TypeError, ValueError):
        return None
