#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the whole product in another way, as a test, and tries it.
#
#   tools/build_variant.sh clang|sanitized DIRECTORY
#
# clang: warnings are errors. sanitized: with AddressSanitizer and
# UndefinedBehaviorSanitizer (under which gcc warns where nothing is wrong). What either finds
# does not need an optimizer, which would take half of the time.
# Ends with "N passed, N failed, N skipped".
set -u
variant=$1 build=$2
source=$(cd "$(dirname "$0")/.." && pwd)

finish()
{
	[ "$2" -eq 0 ] || echo "FAILED: $variant: $3"
	echo "$1 passed, $2 failed, 0 skipped"
	[ "$2" -eq 0 ]
	exit
}

case $variant in
clang)		options='-Dwerror=true -Doptimization=0'; CC=clang ;;
sanitized)	options='-Db_sanitize=address,undefined -Doptimization=1'; CC=${CC:-gcc} ;;
*)		echo "usage: $0 clang|sanitized DIRECTORY" >&2; exit 2 ;;
esac
export CC
# Word splitting of $options is wanted.
# shellcheck disable=SC2086
[ -f "$build/build.ninja" ] || meson setup "$build" "$source" $options ||
	finish 0 1 "cannot be configured"
ninja -C "$build" || finish 0 1 "does not build"

# The sanitizers' own leak check stops other threads with ptrace, which no process of ours may.
ASAN_OPTIONS=detect_leaks=0:abort_on_error=0
UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
export ASAN_OPTIONS UBSAN_OPTIONS
passed=1 log=$build/smoke.log

# smoke NAME STATUS ARGUMENT…: a run that must end with STATUS, and no report of a sanitizer.
smoke()
{
	name=$1 expected=$2
	shift 2
	"$build/src/cli/execpy" run --policy open --memory 4G "$@" </dev/null >"$log" 2>&1
	status=$?
	if [ $status -ne "$expected" ] || grep -qE 'runtime error:|ERROR: AddressSanitizer' "$log"; then
		tail -n 40 "$log"
		finish $passed 1 "run '$name' ended with status $status, expected $expected"
	fi
	passed=$((passed + 1))
}

smoke 'a value' 0 --json -c '1 + 1'
smoke 'an error' 1 "$source/examples/error.py"
smoke 'a time limit' 124 --time 1s -c 'while True: pass'
smoke 'too much output' 137 -c 'while True: print("x" * 1000)'
smoke 'a signal' 143 -c 'import os; os.kill(os.getpid(), 15)'
smoke 'files' 0 --file "$source/examples/sales.csv" --out "$build/smoke-out" \
	-c 'open("copy.csv", "w").write(open("sales.csv").read())'
cmp -s "$source/examples/sales.csv" "$build/smoke-out/copy.csv" ||
	finish $passed 1 "a fetched file differs"
finish $passed 0
