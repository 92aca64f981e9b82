#!/bin/sh
# Wraps each page in the frame: pages/NAME.html becomes public/NAME.html.
set -eu
rm -rf public
mkdir public
for page in pages/*.html; do
  { cat frame-top.html; cat "$page"; cat frame-end.html; } >"public/${page#pages/}"
done
