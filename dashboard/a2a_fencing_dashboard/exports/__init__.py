"""Histories as files: reports for people, tables for data tools, OTLP for this and any other tool."""
