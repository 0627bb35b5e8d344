#!/bin/sh
# Finds a Python that Tidemill supports and hands over to prepare.py.
set -eu
cd "$(dirname "$0")/../.."
for python in python3 python3.13 python3.12 python3.11; do
    if "$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))' 2>/dev/null; then
        exec "$python" infra/setup/prepare.py "$@"
    fi
done
found=$(python3 --version 2>&1) || found="no python3"
echo "setup: Python 3.11, 3.12 or 3.13 is needed and none is on PATH (found: $found); install one, then try again" >&2
exit 1
