"""Every limit of the service, in one file. Sizes are bytes, times seconds.

A limit is what one caller may ask of this machine; the picture and archive limits themselves are
``preprocess.limits.Limits`` and ``preprocess.archive.ArchiveLimits``, made here to fit.
"""

from __future__ import annotations

from dataclasses import dataclass

from preprocess.archive import ArchiveLimits
from preprocess.limits import Limits as PictureLimits

KB = 1024
MB = 1024 * KB
GB = 1024 * MB


@dataclass(frozen=True, slots=True)
class Limits:
    """What the service accepts. Every field may be lowered or raised by whoever starts it."""

    # pictures and batches
    max_file_bytes: int = 64 * MB
    """One picture, in a batch, a zip or the gate."""
    max_batch_bytes: int = 2 * GB
    """The body of an upload, and all pictures of a batch together."""
    max_items: int = 2000
    """Pictures in a batch."""
    max_pixels: int = 64_000_000
    """Width x height of one picture, read from its header before anything is decoded."""
    max_side: int = 30_000
    """Pixels of one side."""
    max_zip_ratio: float = 100.0
    """Unpacked to packed, of an entry over 1 MB."""
    max_unpacked_bytes: int = 4 * GB
    """All entries of a zip together."""
    max_manifest_bytes: int = 4 * MB
    max_name_bytes: int = 200
    """A file name, a batch's or a run's name."""
    max_batches: int = 1000
    """Batches that one key may hold at a time."""

    # addresses to fetch from and to deliver to
    max_urls: int = 500
    max_url_bytes: int = 64 * MB
    """What one address may answer with."""
    url_timeout_s: float = 30.0
    """One address, from the first packet to the last."""
    urls_timeout_s: float = 300.0
    """All addresses of one request."""
    urls_at_once: int = 4
    webhook_timeout_s: float = 10.0
    webhook_attempts: int = 8
    max_webhook_answer_bytes: int = 64 * KB

    # requests
    max_json_bytes: int = 1 * MB
    """A body of JSON, a plan included; also every body of no declared kind."""
    max_json_depth: int = 32
    """Brackets within brackets."""
    max_form_fields: int = 100
    """Fields of a form beside its files."""
    max_plan_bytes: int = 256 * KB
    max_header_bytes: int = 32 * KB
    """The request line and all headers together."""
    header_timeout_s: float = 15.0
    """From the connection, or the last answer, to the end of the next request's headers."""
    body_idle_s: float = 30.0
    """The longest silence inside a body."""
    body_grace_s: float = 60.0
    """What a body may take however small it is; beyond it counts ``body_rate``."""
    body_rate: float = 16.0 * KB
    """The slowest a body may come, bytes a second, waiting time alone counted."""
    max_requests: int = 64
    """Requests being worked on; further ones are told to come back."""
    max_uploads: int = 8
    """Of them, uploads of more than ``upload_from`` or of unknown length."""
    upload_from: int = 16 * MB
    max_connections: int = 512
    keep_alive_s: float = 10.0
    busy_retry_s: int = 2
    """``Retry-After`` of an answer 503 for want of room."""
    store_retry_s: int = 5
    """``Retry-After`` of an answer 503 for want of the database or the blob store."""

    # answers
    page_size: int = 100
    max_page_size: int = 1000
    max_stream_s: float = 3600.0
    """One connection that listens to events."""
    stream_poll_s: float = 1.0
    max_streams: int = 32
    """Connections that listen to events at a time."""
    max_probe_calls: int = 100_000
    """Calls that one plan of text probes may ask."""
    poll_after_s: int = 2
    """``Retry-After`` of a run just begun."""

    # repeated requests
    idempotency_s: float = 24 * 3600.0
    """How long an answer is kept for a repeated Idempotency-Key."""
    idempotency_lease_s: float = 60.0
    """An entry in flight without a sign of life for this long belongs to a process that died."""
    max_idempotency_key: int = 200
    """Characters."""
    max_kept_answer_bytes: int = 8 * MB

    # keys
    failed_keys: int = 10
    """Wrong keys from one address within ``failed_keys_s`` before it is told to wait."""
    failed_keys_s: float = 60.0
    key_seen_s: float = 60.0
    """How exact a key's "last used" is."""
    max_webhook_secret_bytes: int = 256

    # the gate
    gate_processes: int = 0
    """Measuring processes of the gate; 0: LIKENESS_WORKERS, else one a core."""
    gate_waiting: int = 32
    """Pairs in the queue of the gate; further ones are told to come back."""
    gate_waiting_bytes: int = 256 * MB
    """Pictures in that queue, together."""
    gate_timeout_s: float = 60.0

    # the machine
    min_free_bytes: int = 512 * MB
    """Below it the service says that it is not ready."""

    # work
    job_lease_s: float = 30.0
    """A job without a heartbeat for this long belongs to a worker that died."""
    job_attempts: int = 10
    """Workers that may die on one job, none having ended an item, before it is given up."""
    max_queued: int = 1000

    # retention; None keeps until somebody deletes. Whatever was made from a batch goes with it
    keep_originals_s: float | None = 30 * 86_400.0
    """A batch's pictures, from the day it was sent; the others from the day a run ended."""
    keep_edited_s: float | None = 30 * 86_400.0
    keep_landmarks_s: float | None = 30 * 86_400.0
    keep_reports_s: float | None = 30 * 86_400.0
    """Reports that show faces; those of figures alone stay with the figures."""
    keep_figures_s: float | None = None
    keep_events_s: float | None = 90 * 86_400.0
    keep_access_log_s: float | None = 365 * 86_400.0
    stale_batch_s: float = 2 * 86_400.0
    """A batch still being received after this long belongs to a process that died. Longer than the
    slowest upload that ``body_rate`` lets pass."""
    unnamed_blob_s: float = 86_400.0
    """A stored picture that no row names after this long belongs to a process that died."""

    def pictures(self) -> PictureLimits:
        """The decode gate's limits."""
        return PictureLimits(
            max_bytes=self.max_file_bytes,
            max_megapixels=self.max_pixels / 1e6,
            max_side=self.max_side,
        )

    def archives(self) -> ArchiveLimits:
        """The archive reader's limits."""
        return ArchiveLimits(
            max_bytes=self.max_batch_bytes,
            max_entries=self.max_items,
            max_unpacked=self.max_unpacked_bytes,
            max_ratio=self.max_zip_ratio,
            picture=self.pictures(),
        )

    def body(self, path: str, media_type: str) -> int:
        """The most bytes that a request's body may have, by where it goes and what it says it is."""
        if media_type in ("multipart/form-data", "application/zip", "application/x-zip-compressed"):
            if path.startswith("/v1/gate"):
                return 3 * self.max_file_bytes + MB
            return self.max_batch_bytes
        return self.max_json_bytes


DEFAULT = Limits()
