"""Why a request is not stored, and which status says so: the one mapping."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final, NamedTuple

from google.rpc import code_pb2

from a2a_fencing_dashboard.receiver.otlp.decode import UndecodableError
from a2a_fencing_dashboard.store import StoreError

RETRY_AFTER_S: Final = 1


class UnauthorizedError(Exception):
    """The bearer token is missing or wrong."""


class UnsupportedError(Exception):
    """A content type or content encoding that OTLP/HTTP does not have."""


class TooLargeError(Exception):
    """The body is over the limit, as sent or decompressed."""


class TooSlowError(Exception):
    """The body did not arrive in time."""


class OverloadedError(Exception):
    """Too much is waiting to be stored, or the receiver is about to stop."""


class Status(NamedTuple):
    """An HTTP status, the gRPC code in its body, and the headers that go with it."""

    http: int
    grpc: int
    headers: dict[str, str]


_RETRY: Final = {"Retry-After": str(RETRY_AFTER_S)}
_STATUS: Final[dict[type[Exception], Status]] = {
    UndecodableError: Status(400, code_pb2.INVALID_ARGUMENT, {}),
    UnauthorizedError: Status(401, code_pb2.UNAUTHENTICATED, {"WWW-Authenticate": "Bearer"}),
    TooSlowError: Status(408, code_pb2.DEADLINE_EXCEEDED, {"Connection": "close"}),
    TooLargeError: Status(413, code_pb2.RESOURCE_EXHAUSTED, {}),
    UnsupportedError: Status(415, code_pb2.INVALID_ARGUMENT, {}),
    OverloadedError: Status(503, code_pb2.UNAVAILABLE, _RETRY),
    StoreError: Status(503, code_pb2.UNAVAILABLE, _RETRY),
}
_INTERNAL: Final = Status(500, code_pb2.INTERNAL, {})
STATUSES: Final = sorted({HTTPStatus.OK.value, _INTERNAL.http, *(s.http for s in _STATUS.values())})
"""HTTP statuses that requests are answered with, but for what the web framework refuses by itself."""
_GRPC_OF_HTTP: Final = {404: code_pb2.NOT_FOUND, 405: code_pb2.UNIMPLEMENTED}


def status_of(error: Exception) -> Status:
    """The status for an error; what we do not know is our own fault."""
    return _STATUS.get(type(error), _INTERNAL)


def status_of_http(http: int, headers: dict[str, str]) -> Status:
    """The status for what the web framework refused by itself."""
    return Status(http, _GRPC_OF_HTTP.get(http, code_pb2.UNKNOWN), headers)


def text_of(error: Exception) -> str:
    """One line for the sender; nothing of our insides."""
    if status_of(error) is _INTERNAL:
        return HTTPStatus(_INTERNAL.http).phrase
    return str(error)
