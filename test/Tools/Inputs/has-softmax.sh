#!/bin/sh
# 1 (interesting) while the file has a softmax.
if grep -q "nn\.softmax" "$1"; then exit 1; fi
exit 0
