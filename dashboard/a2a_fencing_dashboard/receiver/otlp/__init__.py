"""OTLP as bytes: requests to facts and spans, answers and errors back."""
