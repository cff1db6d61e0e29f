#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# prepare.sh: puts into one directory all that run.sh needs: the kernel, the initramfs, the share.
#
# The kernel is Debian's cloud kernel, downloaded with apt-get and unpacked here: it is never
# installed, so the machine's own boot is not touched. What is there and newer than its sources is
# kept, so that only the first call takes time.
#
#   prepare.sh DIRECTORY
#
# EXECPY_QEMU_KERNEL   another package than the one that linux-image-cloud-* stands for
set -eu
PATH=$PATH:/usr/sbin:/sbin

die() {
	echo "prepare.sh: $*" >&2
	exit 125
}

# Whether the file $1 is there and younger than $2.
newer() {
	[ -n "$(find "$1" -newer "$2" 2>/dev/null)" ]
}

[ $# -eq 1 ] || die "usage: prepare.sh DIRECTORY"
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
work=$(cd "$1" && pwd)

# Two suites may start at once.
exec 9>"$work/lock"
flock -w 300 9 || die "another prepare.sh holds $work/lock"

for tool in "${CC:-gcc}" cpio depmod modprobe dpkg-deb apt-get xz; do
	command -v "$tool" >/dev/null || die "$tool is missing (packages: gcc cpio kmod dpkg apt xz-utils)"
done

# --- the kernel ---
case $(uname -m) in
x86_64) flavour=linux-image-cloud-amd64 ;;
aarch64) flavour=linux-image-cloud-arm64 ;;
*) die "no cloud kernel is known for $(uname -m)" ;;
esac
if [ ! -e "$work/kernel/ready" ]; then
	package=${EXECPY_QEMU_KERNEL:-}
	[ -n "$package" ] || package=$(apt-cache depends "$flavour" |
		awk '$1 == "Depends:" && $2 ~ /^linux-image-/ { print $2; exit }')
	[ -n "$package" ] || die "apt knows no $flavour: run apt-get update"
	rm -rf "$work/kernel" "$work/package"
	mkdir "$work/kernel" "$work/package"
	(cd "$work/package" && timeout 240 apt-get -qq download "$package") ||
		die "apt-get download $package failed"
	dpkg-deb -x "$work"/package/*.deb "$work/kernel"
	rm -rf "$work/package"
	[ -e "$work/kernel/lib" ] || ln -s usr/lib "$work/kernel/lib"
	version=$(cd "$work/kernel/lib/modules" && echo *)
	depmod -b "$work/kernel" "$version"
	echo "$version" >"$work/kernel/ready"
fi
version=$(cat "$work/kernel/ready")
cp -u "$work/kernel/boot/vmlinuz-$version" "$work/vmlinuz"

# --- the two programs ---
for program in init share; do
	newer "$work/$program" "$here/$program.c" && continue
	link=
	[ "$program" = init ] && link=-static
	# shellcheck disable=SC2086
	"${CC:-gcc}" -std=gnu17 -O2 -g0 -Wall -Wextra $link -o "$work/$program.new" "$here/$program.c"
	mv "$work/$program.new" "$work/$program"
done

# --- the initramfs: init, the modules and the order in which to load them ---
if ! newer "$work/initramfs" "$work/init" || ! newer "$work/initramfs" "$work/kernel/ready" ||
	! newer "$work/initramfs" "$here/prepare.sh"; then
	rm -rf "$work/tree"
	mkdir -p "$work/tree/modules" "$work/tree/dev"
	cp "$work/init" "$work/tree/init"
	# The options of /etc/modprobe.d are the host's business.
	for module in virtio_pci virtio_console virtio-rng virtiofs overlay; do
		modprobe -C /dev/null -d "$work/kernel" -S "$version" --show-depends "$module" ||
			die "the kernel $version has no module $module"
	done | awk '$1 == "insmod" && !seen[$2]++ { print $2 }' >"$work/modules"
	[ -s "$work/modules" ] || die "no modules were found for $version"
	: >"$work/tree/modules/order"
	while read -r path; do
		name=$(basename "$path")
		case $name in
		*.ko.xz) name=${name%.xz} && xz -dc "$path" >"$work/tree/modules/$name" ;;
		*.ko) cp "$path" "$work/tree/modules/$name" ;;
		*) die "$path is packed in a way that is not known here" ;;
		esac
		echo "/modules/$name" >>"$work/tree/modules/order"
	done <"$work/modules"
	(cd "$work/tree" && find . -print | LC_ALL=C sort | cpio --quiet -o -H newc -R 0:0) \
		>"$work/initramfs.new"
	mv "$work/initramfs.new" "$work/initramfs"
	rm -rf "$work/tree"
fi
