"""Which URLs may be asked for."""

from __future__ import annotations

import pytest

from domain.errors import LikenessError
from domain.urls import check_url


@pytest.mark.parametrize(
    "url",
    [
        "https://example.org/x.jpg",
        "http://93.184.216.34:8080/x.jpg",
        "https://[2606:4700::1111]/x.jpg",
    ],
)
def test_public_hosts_pass(url: str) -> None:
    check_url(url)


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("", "empty URL"),
        ("ftp://example.org/x", "scheme ftp"),
        ("https:///x.jpg", "without a host"),
        ("https://user:secret@example.org/", "user name"),
        ("http://127.1/", "this machine"),
        ("http://0x7f000001/", "this machine"),
        ("http://0177.0.0.1/", "this machine"),
        ("http://[::ffff:10.0.0.1]/", "private address"),
        ("http://[64:ff9b::7f00:1]/", "NAT64"),
        ("http://[2002:7f00:1::]/", "6to4"),
        ("http://[2001:0:1::]/", "Teredo"),
        ("http://100.64.1.1/", "private address"),
        ("http://192.0.0.8/", "private address"),
        ("http://[fec0::1]/", "private address"),
        ("http://[3fff::1]/", "private address"),
        ("http://\uff11\uff12\uff17.0.0.1/", "this machine"),
        ("http://127\u30020\u30020\u30021/", "this machine"),
        ("http://[fe80::1%25eth0]/", "link-local"),
        ("http://localhost/", "local host name"),
        ("http://metadata.google.internal/", "local host name"),
        ("http://printserver/", "without a domain"),
        ("http://example.org\\@10.0.0.1/", "backslashes"),
        ("http://example.org/\nHost: x", "control characters"),
        ("http://[::1/", "not a valid URL"),
        ("https://example.org/" + "a" * 3000, "too long"),
    ],
)
def test_other_urls_are_refused_by_name(url: str, reason: str) -> None:
    with pytest.raises(LikenessError, match=reason):
        check_url(url)
