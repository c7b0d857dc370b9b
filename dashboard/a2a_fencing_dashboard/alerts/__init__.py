"""Findings going out, from the receiver's side: they are told with no browser open.

Webhooks are told of each change once it is stored (`webhook`, out of the store's outbox); an
Alertmanager is told again and again what stands (`alertmanager`). What Prometheus asks for is the
receiver's to answer.
"""
