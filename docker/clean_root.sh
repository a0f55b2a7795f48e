#!/usr/bin/env bash
# Runs the Dockerfile's very steps without Docker, in an empty Debian made by debootstrap, then tries what came out:
# every library found, `likeness doctor`, a pair measured, `likeness serve` healthy; as the image's user, with no
# rights, on a read-only root file system. Takes the machine's Debian mirror and pip configuration as they are.
# Usage: docker/clean_root.sh [--bare] [--keep] [--wheels FOLDER] [--build-arg NAME=VALUE]...
#   --bare   without root: the pip steps alone, in a bare folder with this machine's libraries
#   --built FOLDER   try out a root that an earlier --keep left (its folder "likeness") without building it again
#   --keep   leave the folder with the root and the logs (about 5 GB); WORK=FOLDER says where it lies
# Exit code 0: all is well; 1: a line beginning with "wrong:" says what is not.
set -euo pipefail
repo=$(cd "$(dirname "$0")/.." && pwd)
keep="" bare="" passed=()
for word in "$@"; do
  case $word in
    --keep) keep=yes ;;
    --bare) bare=yes passed+=("$word") ;;
    -h|--help) sed -n '2,/^set/{s/^# \{0,1\}//p}' "$0"; exit 0 ;;
    *) passed+=("$word") ;;
  esac
done
work=$(mktemp -d "${WORK:-${TMPDIR:-/tmp}}/likeness-root.XXXXXX")
tidy() { [ -n "$keep" ] && printf 'left in %s\n' "$work" || rm -rf --one-file-system "$work"; }
trap tidy EXIT
run=(nice -n 19 python3 "$repo/docker/clean_root.py" --work "$work" "${passed[@]}")
if [ -n "$bare" ]; then
  "${run[@]}"
  exit
fi
if [ "$(id -u)" != 0 ]; then
  printf 'clean_root: an empty Debian wants root; --bare does without\n' >&2
  exit 1
fi
for program in debootstrap unshare setpriv; do
  command -v $program >/dev/null && continue
  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq debootstrap util-linux >/dev/null
done
# Mounts and processes of its own: both are gone when it ends, however it ends.
unshare --mount --propagation private --pid --fork --kill-child --mount-proc "${run[@]}"
