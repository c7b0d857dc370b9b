"""Decompressing a body without ever holding more of it than allowed."""

from __future__ import annotations

import zlib
from typing import Final

from a2a_fencing_dashboard.receiver.errors import TooLargeError, UnsupportedError
from a2a_fencing_dashboard.receiver.otlp.decode import UndecodableError

CONTENT_ENCODINGS: Final = {"": None, "identity": None, "gzip": 31, "deflate": 15}
"""What OTLP/HTTP senders use, and how zlib is told about it."""


def decompress(body: bytes, content_encoding: str, limit: int) -> bytes:
    """The body as it was before compression.

    Raises:
        UnsupportedError: The encoding is not known.
        TooLargeError: It has more than `limit` bytes; they were not all decompressed to find out.
        UndecodableError: It is not what the encoding says.
    """
    if content_encoding not in CONTENT_ENCODINGS:
        raise UnsupportedError(f"unknown content encoding {content_encoding!r}")
    window_bits = CONTENT_ENCODINGS[content_encoding]
    if window_bits is None:
        return body
    decompressor = zlib.decompressobj(window_bits)
    try:
        plain = decompressor.decompress(body, limit + 1)
    except zlib.error as error:
        raise UndecodableError(f"not {content_encoding} data: {error}") from error
    if len(plain) > limit:
        raise TooLargeError(f"the body has more than {limit} bytes, decompressed")
    if not decompressor.eof or decompressor.unused_data:
        raise UndecodableError(f"the {content_encoding} data does not end where the body ends")
    return plain
