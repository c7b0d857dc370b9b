"""Judges a history: facts in, findings out. Pure: no clock, no I/O, no OpenTelemetry."""

from a2a_fencing.checker.report import Finding, Gap, Report

__all__ = ["Finding", "Gap", "Report"]
