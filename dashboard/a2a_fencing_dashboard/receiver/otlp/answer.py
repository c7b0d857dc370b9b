"""OTLP back to the sender: what was stored, or why nothing was; in the encoding of the request."""

from __future__ import annotations

from typing import Any, Final

from google.protobuf import json_format
from google.protobuf.message import Message
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from a2a_fencing_dashboard.receiver.otlp.decode import JSON, LOGS, METRICS, TRACES

_RESPONSES: Final[dict[str, tuple[type[Any], str]]] = {
    LOGS: (ExportLogsServiceResponse, "rejected_log_records"),
    TRACES: (ExportTraceServiceResponse, "rejected_spans"),
    METRICS: (ExportMetricsServiceResponse, "rejected_data_points"),
}


def success(signal: str, content_type: str, malformed: list[str]) -> bytes:
    """The body of an answer to a request that was stored, but for its malformed records."""
    response_type, rejected = _RESPONSES[signal]
    response = response_type()
    if malformed:
        setattr(response.partial_success, rejected, len(malformed))
        response.partial_success.error_message = f"not stored: {malformed[0]}" + (
            f" (and {len(malformed) - 1} more)" if len(malformed) > 1 else ""
        )
    return _encoded(response, content_type)


def failure(code: int, message: str, content_type: str) -> bytes:
    """The body of an answer to a request of which nothing was stored; `code` is a gRPC code."""
    return _encoded(Status(code=code, message=message), content_type)


def _encoded(message: Message, content_type: str) -> bytes:
    if content_type == JSON:
        return json_format.MessageToJson(message, indent=None).encode()
    return message.SerializeToString()
