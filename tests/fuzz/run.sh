#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run.sh: builds the fuzz targets with clang and libFuzzer and runs each for a while.
#
#   tests/fuzz/run.sh [SECONDS [TARGET…]]     default: 60 seconds for each target
#
# What is found new is kept in build-fuzz/corpus/TARGET; an input that fails is
# written to build-fuzz/TARGET-crash-… and named. A corpus in tests/fuzz/corpus
# also runs as a unit test, with every compiler. Ends with a line of counts.
set -u
PATH=/usr/sbin:/usr/bin:/sbin:/bin:$PATH
here=$(cd "$(dirname "$0")" && pwd)
source=$(cd "$here/../.." && pwd)
build=${FUZZ_BUILD:-$source/build-fuzz}
seconds=${1:-60}
[ $# -gt 0 ] && shift

for clang in ${CC:-} clang clang-14 clang-15 clang-16 clang-19; do
	command -v "$clang" >/dev/null && break
	clang=
done
if [ -z "$clang" ]; then
	echo "fuzz: no clang here" >&2
	echo "0 passed, 0 failed, 1 skipped"
	exit 0
fi
if [ ! -f "$build/build.ninja" ]; then
	CC=$clang meson setup "$build" "$source" -Db_sanitize=address,undefined -Db_lundef=false \
		-Dc_args='-fsanitize=fuzzer-no-link -fno-sanitize-recover=undefined' >"$build.log" 2>&1 || {
		tail -20 "$build.log"
		exit 1
	}
	mv "$build.log" "$build/setup.log"
fi
[ $# -gt 0 ] || set -- $(cd "$here" && ls fuzz_*.c | sed 's/^fuzz_//; s/\.c$//')

passed=0 failed=0 skipped=0
for target; do
	if ! ninja -C "$build" "tests/fuzz/fuzz_$target" >"$build/$target.log" 2>&1; then
		if grep -q "unknown target" "$build/$target.log"; then
			echo "fuzz $target: skipped: not a target of tests/fuzz/meson.build"
			skipped=$((skipped + 1))
		else
			grep -E 'error|FAILED' "$build/$target.log"
			echo "fuzz $target: does not build, see $build/$target.log"
			failed=$((failed + 1))
		fi
		continue
	fi
	mkdir -p "$build/corpus/$target"
	# 77 is a target's word that this host cannot run it, and would be libFuzzer's for a
	# crash. To name functions it starts a program, whose pipes would count as leaks.
	nice -n 19 "$build/tests/fuzz/fuzz_$target" -max_total_time="$seconds" -rss_limit_mb=2048 \
		-timeout=30 -max_len=65536 -print_final_stats=1 -verbosity=1 \
		-error_exitcode=76 -print_funcs=0 \
		-artifact_prefix="$build/$target-" "$build/corpus/$target" "$here/corpus/$target" \
		>"$build/$target.log" 2>&1
	status=$?
	if [ $status -eq 0 ]; then
		echo "fuzz $target: $(sed -n 's/^stat::number_of_executed_units: *//p' "$build/$target.log") inputs in $seconds s"
		passed=$((passed + 1))
	elif [ $status -eq 77 ]; then
		echo "fuzz $target: skipped: no namespaces to have a file system of its own"
		skipped=$((skipped + 1))
	else
		grep -E 'must hold|ERROR|runtime error|Test unit written|SUMMARY' "$build/$target.log"
		echo "fuzz $target: failed, see $build/$target.log"
		failed=$((failed + 1))
	fi
done
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
