"""The forms of mask that APIs take, for adapters whose settings choose one."""

from __future__ import annotations

from typing import Literal

from adapters.codec import mask_as_alpha, mask_png, write_png
from domain.edits import EditRequest

MaskForm = Literal["white_is_edit", "black_is_edit", "alpha_zero_is_edit"]


def mask_in(request: EditRequest, form: MaskForm) -> bytes:
    """The request's mask as a PNG of ``form``, of the picture's size: 8-bit grey for the first two,
    RGBA for the third. Raises ValueError without a mask, for an empty one and for another size."""
    white = mask_png(request)
    assert request.mask is not None
    size = (request.height, request.width)
    if request.mask.values.shape != size:
        raise ValueError("the mask is not of the picture's size")
    if form == "alpha_zero_is_edit":
        return mask_as_alpha(request)
    return white if form == "white_is_edit" else write_png(255 - request.mask.values)
