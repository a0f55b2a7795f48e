#!/bin/sh
# Proves that the fake servers speak the makers' protocols: the makers' own Python SDKs, installed in a
# temporary environment, must get pictures, refusals, retries and a wrong key out of them.
# Usage: scripts/sdk_check.sh    PYTHON names the interpreter of this project (default .venv/bin/python).
set -eu
cd "$(dirname "$0")/.."
python=${PYTHON:-.venv/bin/python}
work=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
"$python" -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet openai google-genai replicate 2> "$work/pip.log" || {
    cat "$work/pip.log" >&2
    exit 2
}
"$work/venv/bin/pip" freeze 2>/dev/null | grep -iE '^(openai|google-genai|replicate)=='
key=fake-sdk-key-0123456789
"$python" - "$key" > "$work/servers" 2> "$work/servers.log" <<'PYTHON' &
import sys
import threading
from service.fake_servers.contract import start

for maker in ("openai", "gemini", "replicate"):
    for played in ("ok", "refuse", "429", "401"):
        server = start(maker, key=sys.argv[1])
        server.next("ok" if played == "401" else played)
        print(f"{maker}/{played}={server.url}", flush=True)
print("ready", flush=True)
threading.Event().wait()
PYTHON
server=$!
tries=0
until grep -q '^ready$' "$work/servers"; do
    tries=$((tries + 1))
    if [ "$tries" -gt 240 ] || ! kill -0 "$server" 2>/dev/null; then
        cat "$work/servers.log" >&2
        exit 2
    fi
    sleep 0.5
done
# shellcheck disable=SC2046 # the targets are words without spaces
"$work/venv/bin/python" scripts/sdk_check.py $(grep -v '^ready$' "$work/servers") "$key"
