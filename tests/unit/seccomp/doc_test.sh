#!/bin/sh
# The tables of docs/seccomp.md are those of the policy.  Usage: doc_test.sh seccomp-gen docs/seccomp.md
set -eu
if "$1" doc "$2" | diff -u "$2" -; then
    exit 0
fi
echo "docs/seccomp.md is out of date: seccomp-gen doc prints it anew" >&2
exit 1
