#!/bin/sh
# 1 (interesting) while a layer norm reads what an add makes.
for sum in $(sed -n 's/^ *\(%[0-9a-z_]*\) = nn\.add .*/\1/p' "$1"); do
  if grep -q "nn\.layer_norm $sum\b" "$1"; then exit 1; fi
done
exit 0
