#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# test_cgroup2.sh: runs the cgroup v2 part of the suite (cgroup2.py) in the QEMU guest.
#
#   test_cgroup2.sh [WORDS]       only the cases whose name has WORDS in it
#
# EXECPY_BIN        the program (default: build/src/cli/execpy of the repository)
# EXECPY_QEMU_DIR   see run.sh
#
# Ends with "N passed, N failed, N skipped"; exit status 0 when nothing failed. A guest that does
# not come up is a failure, and a host on which none can is a skip that names what is missing.
set -u
here=$(cd "$(dirname "$0")" && pwd)

skip() {
	echo "skipped  cgroup v2: $*"
	echo "0 passed, 0 failed, 1 skipped"
	exit 0
}

[ "$(uname -m)" = x86_64 ] || skip "the guest is for x86-64 hosts"
command -v qemu-system-x86_64 >/dev/null || skip "this host has no qemu-system-x86"
[ -x /usr/lib/qemu/virtiofsd ] || [ -x /usr/libexec/virtiofsd ] || skip "this host has no virtiofsd"
[ "$(id -u)" -eq 0 ] || sudo -n true 2>/dev/null || skip "this user may not become root"

EXECPY_BIN=${EXECPY_BIN:-$(cd "$here/../.." && pwd)/build/src/cli/execpy}
export EXECPY_BIN
"$here/run.sh" --timeout "${EXECPY_QEMU_TIMEOUT:-900}" /usr/bin/python3 -I -B "$here/cgroup2.py" "$@"
status=$?
# 124 and 125 are the guest's ends, in which the last line is missing.
case $status in
0 | 1) exit $status ;;
esac
echo "FAILED  cgroup v2: the guest ended with $status"
echo "0 passed, 1 failed, 0 skipped"
exit 1
