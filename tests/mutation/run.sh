#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run.sh: see run.py; only picks the system's own tools.
PATH=/usr/sbin:/usr/bin:/sbin:/bin:$PATH
export PATH
exec /usr/bin/python3 "$(dirname "$0")/run.py" "$@"
