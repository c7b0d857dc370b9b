from __future__ import annotations

import gzip
import tracemalloc
import zlib

import pytest

from a2a_fencing_dashboard.receiver.body import decompress
from a2a_fencing_dashboard.receiver.errors import TooLargeError, UnsupportedError
from a2a_fencing_dashboard.receiver.otlp.decode import UndecodableError

TEXT = b"a fact, a fact, a fact" * 10


@pytest.mark.parametrize(
    ("sent", "encoding"),
    [
        (TEXT, ""),
        (TEXT, "identity"),
        (gzip.compress(TEXT, mtime=0), "gzip"),
        (zlib.compress(TEXT), "deflate"),
    ],
)
def test_what_senders_use_is_undone(sent: bytes, encoding: str) -> None:
    assert decompress(sent, encoding, len(TEXT)) == TEXT


@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip, gzip", "GZIP"])
def test_other_encodings_are_unsupported(encoding: str) -> None:
    with pytest.raises(UnsupportedError):
        decompress(TEXT, encoding, 1000)


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        TEXT,
        gzip.compress(TEXT, mtime=0)[:-1],
        gzip.compress(TEXT, mtime=0)[:15],
        gzip.compress(TEXT, mtime=0) + b"\x00",
        gzip.compress(TEXT, mtime=0) + gzip.compress(TEXT, mtime=0),
        gzip.compress(TEXT, mtime=0)[:-8] + b"\x00" * 8,
        zlib.compress(TEXT),
    ],
)
def test_what_is_not_gzip_is_undecodable(sent: bytes) -> None:
    with pytest.raises(UndecodableError):
        decompress(sent, "gzip", 1000)


def test_one_byte_over_the_limit_is_too_large() -> None:
    with pytest.raises(TooLargeError):
        decompress(gzip.compress(TEXT, mtime=0), "gzip", len(TEXT) - 1)


def test_a_bomb_is_never_inflated() -> None:
    bomb = gzip.compress(bytes(300 << 20), compresslevel=1)
    tracemalloc.start()
    try:
        with pytest.raises(TooLargeError):
            decompress(bomb, "gzip", 1 << 20)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < 8 << 20
