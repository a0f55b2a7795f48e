#!/usr/bin/env bash
# Without the pre-commit program: copy to .git/hooks/pre-commit and make it executable.
# Measures pairs.csv (or $LIKENESS_PAIRS) when a picture or the list itself is about to be committed;
# a pair that fails, or cannot be measured, stops the commit. Inconclusive ones are only shown.
set -uo pipefail
pairs=${LIKENESS_PAIRS:-pairs.csv}
cd "$(git rev-parse --show-toplevel)" || exit 2
git diff --cached --name-only --diff-filter=ACMR -z -- "$pairs" \
  ':(icase)*.jpg' ':(icase)*.jpeg' ':(icase)*.png' ':(icase)*.webp' ':(icase)*.tif' ':(icase)*.tiff' \
  ':(icase)*.heic' ':(icase)*.avif' | grep -qz . || exit 0
likeness gate --batch "$pairs"
code=$?
[ "$code" -eq 3 ] && exit 0
exit "$code"
