"""Every limit of the decode gate and of the archive reader, in one file."""

from __future__ import annotations

from dataclasses import dataclass

from domain.errors import PictureRejected


@dataclass(frozen=True, slots=True)
class Limits:
    """What one picture file may ask of this machine.

    ``max_bytes`` is the file's size, ``max_megapixels`` and ``max_side`` are read from the header
    before anything is decoded, ``max_frames`` counts pictures in one file (only the first is used),
    ``max_metadata_bytes`` is what profile, EXIF and text may take after unpacking.
    """

    max_bytes: int = 128 * 1024 * 1024
    max_megapixels: float = 64.0
    max_side: int = 30_000
    max_frames: int = 20_000
    max_metadata_bytes: int = 8 * 1024 * 1024

    def check_size(self, width: int, height: int, what: str = "image") -> None:
        """Refuse a picture by its header's width and height in pixels.

        Raises PictureRejected with code ``bad_size`` or ``too_large``.
        """
        if width < 1 or height < 1:
            raise PictureRejected(f"invalid {what} size ({width} x {height})", "bad_size")
        if width * height > self.max_megapixels * 1e6:
            raise PictureRejected(
                f"image too large: {width} x {height}, limit {self.max_megapixels:g} megapixels",
                "too_large",
            )
        if max(width, height) > self.max_side:
            raise PictureRejected(
                f"image side too large: {width} x {height}, limit {self.max_side} pixels a side",
                "too_large",
            )

    def check_bytes(self, size: int) -> None:
        """Refuse a file by its length in bytes."""
        if size == 0:
            raise PictureRejected("empty file", "empty")
        if size > self.max_bytes:
            raise PictureRejected(
                f"file too large: {size / 1e6:.0f} MB, limit {self.max_bytes / 1e6:.0f} MB",
                "too_large",
            )

    def check_frames(self, frames: int) -> None:
        """Refuse a file that claims more pictures than anyone needs."""
        if frames > self.max_frames:
            raise PictureRejected(
                f"too many frames: {frames}, limit {self.max_frames}", "too_many_frames"
            )


DEFAULT_LIMITS = Limits()
