"""Judges a history: facts in, findings out. Pure: no clock, no I/O, no OpenTelemetry."""

from a2a_fencing.checker.checker import Checker, check
from a2a_fencing.checker.report import Changes, Finding, Gap, Report

__all__ = ["Changes", "Checker", "Finding", "Gap", "Report", "check"]
