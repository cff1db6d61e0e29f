#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run.sh: runs one command as root in a QEMU guest that has cgroup v2 and sees the host's files.
#
#   run.sh [--timeout SECONDS] [--memory MIB] [--env NAME=VALUE]… [--] COMMAND [ARGUMENT…]
#
# The command runs in the current directory, with a small environment plus what --env names plus
# every EXECPY_* variable. It may write anywhere: what it writes is in the guest's memory and gone
# afterwards. Its output (both streams) is copied to stdout as it comes, its exit status is ours.
# Over the time the status is 124. When the guest itself fails the status is 125, and the end of
# the guest's console is shown on stderr.
#
# QEMU only interprets (TCG): computing is about 20 times slower than outside, forking 4 times.
# Needed: the packages named below, and root (or sudo without a password) for the share. Not
# needed: /dev/kvm, and a network once the kernel was downloaded.
#
# EXECPY_QEMU_DIR      where kernel and initramfs are kept (default: build/qemu of the repository)
set -eu

timeout=600 memory=3072
here=$(cd "$(dirname "$0")" && pwd)
work=${EXECPY_QEMU_DIR:-$here/../../build/qemu}
directory=$(pwd)

die() {
	echo "run.sh: $*" >&2
	exit 125
}

[ "$(uname -m)" = x86_64 ] || die "only x86-64 guests are supported"
qemu=$(command -v qemu-system-x86_64) || die "qemu-system-x86_64 is missing (package: qemu-system-x86)"
for virtiofsd in /usr/libexec/virtiofsd /usr/lib/qemu/virtiofsd ''; do
	[ ! -x "$virtiofsd" ] || break
done
[ -n "$virtiofsd" ] || die "virtiofsd is missing (package: qemu-system-common, or virtiofsd from Debian 13 on)"
"$here/prepare.sh" "$work"
if [ "$(id -u)" -ne 0 ]; then
	sudo -n true 2>/dev/null || die "sharing the files needs root"
	exec sudo -n -E "$here/run.sh" "$@"
fi
work=$(cd "$work" && pwd)

variables=$(mktemp "${TMPDIR:-/tmp}/execpy-qemu.XXXXXX")
run='' guest='' share='' copy=''

# shellcheck disable=SC2317 # called by the trap
# Ends what was started here, by its id, and nothing else.
clean_up() {
	trap - EXIT INT TERM HUP
	exec 8>&-
	for child in $guest $share; do
		kill "$child" 2>/dev/null || true
	done
	for child in $guest $share $copy; do
		wait "$child" 2>/dev/null || true
	done
	rm -f "$variables"
	[ -z "$run" ] || rm -rf "$run"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

while [ $# -gt 0 ]; do
	case $1 in
	--timeout) timeout=$2 && shift 2 ;;
	--memory) memory=$2 && shift 2 ;;
	--env) printf '%s\0' "$2" >>"$variables" && shift 2 ;;
	--) shift && break ;;
	-*) die "unknown option $1" ;;
	*) break ;;
	esac
done
[ $# -gt 0 ] || die "usage: run.sh [--timeout SECONDS] [--memory MIB] [--env NAME=VALUE]... COMMAND [ARGUMENT...]"
case $timeout$memory in *[!0-9]*) die "--timeout and --memory want whole numbers" ;; esac

# Not in the build directory: a socket's path must be short.
run=$(mktemp -d "${TMPDIR:-/tmp}/execpy-qemu.XXXXXX")

# --- the request, as a second archive behind the initramfs ---
token=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
{
	printf '%s\0' "$token" "$timeout" "$directory" "$#" "$@"
	printf '%s\0' PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
		HOME=/root LANG=C.UTF-8 TERM=dumb EXECPY_IN_QEMU=1
	env -0 | grep -z '^EXECPY_' || true
	cat "$variables"
} >"$run/request"
(cd "$run" && echo request | cpio --quiet -o -H newc -R 0:0) >"$run/request.cpio"
cat "$work/initramfs" "$run/request.cpio" >"$run/initramfs"

# --- the share, the copier of the output, the guest ---
# The deadlines are nested: the guest's own, then QEMU's, then the share's.
nice -n 3 timeout -k 5 $((timeout + 120)) "$work/share" "$run/share" "$virtiofsd" \
	-o source=/ -o sandbox=chroot -o cache=always -o no_posix_lock --rlimit-nofile=0 \
	>"$run/share.log" 2>&1 </dev/null &
share=$!
waited=0
while [ ! -S "$run/share" ]; do
	if [ $waited -ge 100 ] || ! kill -0 $share 2>/dev/null; then
		die "the share did not start: $(cat "$run/share.log")"
	fi
	sleep 0.1
	waited=$((waited + 1))
done

# Descriptor 8 keeps the pipe open for the copier also when QEMU never gets to opening it.
mkfifo "$run/output"
exec 8<>"$run/output"
cat "$run/output" 8>&- &
copy=$!
nice -n 3 timeout -k 5 $((timeout + 90)) "$qemu" \
	-machine q35,accel=tcg,memory-backend=memory -cpu max,la57=off -smp 2 -m "$memory" \
	-object memory-backend-memfd,id=memory,size="${memory}M",share=on \
	-nodefaults -no-user-config -no-reboot -display none \
	-kernel "$work/vmlinuz" -initrd "$run/initramfs" \
	-append "console=ttyS0 quiet loglevel=4 panic=-1 mitigations=off tsc=reliable no_timer_check rcupdate.rcu_expedited=1" \
	-chardev file,id=console,path="$run/console" -serial chardev:console \
	-chardev socket,id=share,path="$run/share" -device vhost-user-fs-pci,chardev=share,tag=host \
	-device virtio-rng-pci -device virtio-serial-pci \
	-chardev file,id=output,path="$run/output" -device virtserialport,chardev=output,name=output \
	-chardev file,id=status,path="$run/status" -device virtserialport,chardev=status,name=status \
	>"$run/qemu.log" 2>&1 </dev/null 8>&- &
guest=$!

ended=0
wait $guest || ended=$?
guest=''
exec 8>&-
wait $copy || true
copy=''

# --- the status: only with the token ---
status=$(sed -n "s/^$token \([0-9][0-9]*\)$/\1/p" "$run/status" 2>/dev/null || true)
if [ -z "$status" ]; then
	{
		echo "run.sh: the guest ended without a status (qemu: $ended); its console:"
		tail -n 30 "$run/console" 2>/dev/null || true
		cat "$run/qemu.log" "$run/share.log"
	} >&2
	exit 125
fi
exit "$status"
