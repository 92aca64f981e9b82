#!/bin/sh
# Every link between pages leads to a page that is there.
set -eu
broken=0
for page in public/*.html; do
  for link in $(grep -o 'href="[^"#]*"' "$page" | sed 's/^href="//; s/"$//' | grep -v '^https:' || true); do
    if [ ! -f "public/$link" ]; then
      echo "$page: $link leads nowhere" >&2
      broken=1
    fi
  done
done
exit $broken
