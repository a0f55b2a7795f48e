"""Where a model is asked, and what asking costs there."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit, urlunsplit

from pydantic import SecretStr

from domain.errors import LikenessError
from domain.tools import RateLimit
from domain.urls import check_url


@dataclass(frozen=True, slots=True)
class TokenPrice:
    """``currency`` for 10^6 tokens read and written; hidden reasoning is written too. ``source``
    says where the figures are from and of what date: prices change."""

    input_per_million: float
    output_per_million: float
    currency: str = "USD"
    source: str = ""

    def __post_init__(self) -> None:
        if not (0 <= self.input_per_million < 1e9 and 0 <= self.output_per_million < 1e9):
            raise LikenessError("a price for a million tokens is 0 or more")

    def of(self, prompt_tokens: float, completion_tokens: float) -> float:
        """What that many tokens cost, in ``currency``."""
        read = prompt_tokens * self.input_per_million
        return (read + completion_tokens * self.output_per_million) / 1e6


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An OpenAI-compatible server and the model asked for. ``base_url`` is what stands before
    ``/chat/completions`` ("https://api.example.com/v1"); a query behind it goes with every request.

    ``concurrency`` calls run at once, begun no faster than ``rate`` allows. A call is sent at most
    ``max_attempts`` times and waits ``max_wait_s`` seconds at most between them, all together.
    ``timeout_s`` bounds one attempt as a whole. ``price`` None: cost is unknown, not nothing.
    Raises LikenessError in one line naming the field.
    """

    base_url: str
    model: str
    key: SecretStr | None = None
    concurrency: int = 8
    rate: RateLimit | None = None
    max_attempts: int = 5
    max_wait_s: float = 120.0
    timeout_s: float = 60.0
    price: TokenPrice | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "base_url", _address(self.base_url))
        if not self.model.strip():
            raise LikenessError("endpoint: 'model' is empty")
        for name, low, high in (
            ("concurrency", 1, 1024),
            ("max_attempts", 1, 100),
            ("max_wait_s", 0, 86_400),
            ("timeout_s", 0.001, 86_400),
        ):
            if not low <= getattr(self, name) <= high:
                raise LikenessError(f"endpoint: '{name}' is between {low} and {high}")
        if self.key is not None:
            object.__setattr__(self, "key", _fits_a_header(self.key))
            _keeps_the_key_covered(self.base_url)

    @property
    def name(self) -> str:
        """Address and model, without key and query: what a call's key is made with."""
        return f"{urlunsplit(urlsplit(self.base_url)._replace(query=''))} {self.model}"

    @property
    def host(self) -> str:
        """For messages."""
        return urlsplit(self.base_url).hostname or ""

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must never be shown: the key, and values of the address's query."""
        query = urlsplit(self.base_url).query
        key = (self.key.get_secret_value(),) if self.key else ()
        return key + tuple(part.partition("=")[2] for part in query.split("&") if "=" in part)

    def url(self, path: str) -> str:
        """The whole address of ``path`` ("chat/completions")."""
        parts = urlsplit(self.base_url)
        return urlunsplit(parts._replace(path=f"{parts.path}/{path}"))

    def headers(self) -> dict[str, str]:
        """The headers that carry the key; one maker's cloud has a header of its own."""
        if self.key is None:
            return {}
        value = self.key.get_secret_value()
        if self.host.endswith((".openai.azure.com", ".cognitiveservices.azure.com")):
            return {"api-key": value}
        return {"authorization": f"Bearer {value}"}


def _address(url: str) -> str:
    try:
        parts = urlsplit(url.strip())
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        raise LikenessError(
            "endpoint: 'base_url' is an http or https address, such as https://api.example.com/v1"
        )
    if parts.username or parts.password:
        raise LikenessError("endpoint: no user name or password in 'base_url'; use the key")
    return urlunsplit(parts._replace(path=parts.path.rstrip("/"), fragment=""))


def _fits_a_header(key: SecretStr) -> SecretStr:
    """A line break in it would end up, key and all, in the error of whoever builds headers."""
    value = key.get_secret_value().strip()
    if not (value and value.isascii() and value.isprintable()):
        raise LikenessError(
            "endpoint: the key is empty, or has a character that no key has (a line break, a quote)"
        )
    return SecretStr(value)


def _keeps_the_key_covered(url: str) -> None:
    """Plain http with a key is for this machine and the local network."""
    if not url.startswith("http://"):
        return
    try:
        check_url(url)
    except LikenessError:
        return
    raise LikenessError("endpoint: over http the key could be read on its way; use https")
