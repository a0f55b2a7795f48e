#!/usr/bin/env bash
# Checks the tool stable_diffusion on a CUDA machine: fp16, bf16 and float32 against the CPU, images a
# second, peak memory. Nothing is downloaded.
# Usage: docker/gpu_check.sh [--model FOLDER|FILE|HUB_ID] [--config FOLDER] [--size 512] [--steps 10]
#                            [--threads 1] [--pictures 8] [--real-pictures 4]
#                            [--cpu-pictures 1] [--json FILE]
# In a container: docker run --gpus all -v "$PWD":/likeness -w /likeness IMAGE docker/gpu_check.sh
# PYTHON chooses the interpreter (default: .venv/bin/python, else python3); it needs the packages of
# `scripts/setup.sh diffusion` and a torch built for CUDA.
# Exit status: 0 painted and compared, 1 something failed, 2 no CUDA device (CPU row only).
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
python=${PYTHON:-$here/.venv/bin/python}
[ -n "${PYTHON:-}" ] || [ -x "$python" ] || python=python3
if command -v nvidia-smi >/dev/null; then
  nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader || true
fi
missing=$("$python" -c '
from importlib.util import find_spec
needed = "torch diffusers transformers accelerate peft safetensors cv2 pydantic psutil PIL".split()
print(*(name for name in needed if find_spec(name) is None))')
if [ -n "$missing" ]; then
  printf 'gpu_check: %s lacks the packages: %s; run scripts/setup.sh diffusion\n' "$python" "$missing" >&2
  exit 1
fi
export HF_HUB_OFFLINE=1 OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}
exec "$python" "$here/docker/gpu_check.py" "$@"
