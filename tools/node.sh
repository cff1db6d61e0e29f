#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# node: the programs of others that tests run under Node, as tests/node/package-lock.json names
# them, in tests/node/node_modules: Node itself, too.
#
#   tools/node.sh install    install them, if they are not there as the lock file has them
#
# Silent when there is nothing to do. No script of a package is run. Exit status: 0 done, 1 not
# possible, 2 wrong usage.
set -u
cd "$(dirname "$0")/.." || exit 1

[ $# -eq 1 ] && [ "$1" = install ] || { echo 'usage: tools/node.sh install' >&2; exit 2; }
done=tests/node/node_modules/.installed
cmp -s tests/node/package-lock.json "$done" && exit 0
tools/packages.sh install node || exit 1
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT
# A registry that hiccups gets three tries.
for pause in 2 10 0; do
	if (cd tests/node && npm ci --no-progress) >"$log" 2>&1; then
		cp tests/node/package-lock.json "$done"
		exit 0
	fi
	sleep "$pause"
done
echo "tools/node.sh: npm ci failed ($(grep -E '(ERR!|error)' "$log" | head -n 1))" >&2
exit 1
