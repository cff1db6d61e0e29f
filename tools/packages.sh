#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Which Debian packages are needed for what, and how the missing ones get installed.
#
#   tools/packages.sh list    NAME...   print the packages of these lists, one a line
#   tools/packages.sh missing NAME...   print those that are not installed
#   tools/packages.sh install NAME...   install those that are not installed
#
# `install` is silent when there is nothing to do, uses sudo when it is not run as root,
# and answers with one line when it cannot do its work. Exit status: 0 done, 1 not possible,
# 2 wrong usage.
set -u

usage='usage: tools/packages.sh list|missing|install NAME... (build science test node parity lint fuzz bench peers qemu)'

# Prints the packages of the list $1. Lists may overlap.
packages_of()
{
	case $1 in
	build)		# compiler, build system, the CPython to embed, the seccomp compiler
		echo gcc libc6-dev linux-libc-dev meson ninja-build pkg-config
		echo python3 python3-dev libseccomp-dev libevent-dev nettle-dev
		echo libyaml-dev libjansson-dev libarchive-dev libedit-dev
		echo node-llhttp libssl-dev ;;
	science)	# what the examples import, and the data that scripts expect to find
		echo python3-numpy python3-pandas python3-matplotlib
		echo fonts-dejavu-core tzdata ca-certificates ;;
	test)		# unit and end-to-end tests; util-linux has unshare and setpriv; the page is
			# looked at in Chromium
		echo libcmocka-dev python3-pytest python3-jsonschema strace util-linux procps
		echo openssl chromium ;;
	node)		# installs what tests/node/package-lock.json names, a newer Node among it
		echo nodejs npm ;;
	parity)		# the libraries that the tasks and attacks in tests/corpus import
		packages_of science
		echo python3-bs4 python3-cffi python3-chardet python3-cryptography
		echo python3-dateutil python3-django python3-docx python3-fake-factory
		echo python3-flask python3-flask-login python3-flask-mail python3-flaskext.wtf
		echo python3-folium python3-geopy python3-h5py python3-holidays
		echo python3-html5lib python3-lxml python3-mechanize python3-nltk
		echo python3-opencv python3-openpyxl python3-pil python3-prettytable
		echo python3-psutil python3-pyquery python3-regex python3-requests
		echo python3-requests-mock python3-rsa python3-scipy python3-seaborn
		echo python3-setuptools python3-skimage python3-sklearn python3-statsmodels
		echo python3-sympy python3-texttable python3-tz python3-werkzeug
		echo python3-wtforms python3-xlrd python3-xlwt python3-xmltodict ;;
		# Left out: python3-wordcloud (one task; pulls in 1.5 GB of TeX).
		# Not in Debian 12: tensorflow, textblob, blake3 (one task each).
	lint)		# second compiler and the static checks
		echo clang clang-format clang-tidy cppcheck shellcheck ;;
	fuzz)		# libFuzzer and the sanitizers' run-time libraries
		echo clang libclang-rt-dev ;;
	bench)		# what cold starts and the verifier are compared with
		echo bubblewrap bandit pyflakes3 ;;
	peers)		# what warm runs are compared with; Pyodide itself comes from npm
		echo bubblewrap firejail runc runsc nodejs npm python3-ipykernel python3-jupyter-client ;;
	qemu)		# the machine in which cgroup v2 is tested; virtiofsd is in -common
		echo qemu-system-x86 qemu-system-common cpio kmod xz-utils ;;
	*)
		echo "tools/packages.sh: no list named '$1'; $usage" >&2
		return 2 ;;
	esac
}

# Prints the packages of the given lists, sorted, each once.
list()
{
	for name; do
		packages_of "$name" >/dev/null || return 2
	done
	for name; do
		packages_of "$name"
	done | tr ' ' '\n' | sort -u
}

# Reads package names, one a line; prints those that are not installed. A virtual package
# counts as installed when something that provides it is.
not_installed()
{
	while read -r package; do
		status=$(dpkg-query -W -f '${db:Status-Status} ' "$package" 2>/dev/null)
		case " $status" in *" installed "*) continue ;; esac
		provider=$(dpkg-query -W -f '${db:Status-Status} ${Provides}\n' 2>/dev/null |
			grep '^installed ' | grep -E "[ ,]$package([ ,]|$)" | head -n 1)
		[ -n "$provider" ] || echo "$package"
	done
}

# Splits the names in $1 into $available and $unknown (those for which this distribution
# has no candidate).
find_candidates()
{
	available='' unknown=''
	for package in $1; do
		if apt-cache policy "$package" 2>/dev/null | grep -q 'Candidate: [^(]' ||
			apt-cache showpkg "$package" 2>/dev/null | sed '1,/^Reverse Provides/d' |
			grep -q .; then
			available="$available $package"
		else
			unknown="$unknown $package"
		fi
	done
}

# Runs apt-get as root, quietly, waiting for another apt-get to end.
apt_get()
{
	$as_root env DEBIAN_FRONTEND=noninteractive \
		apt-get -qq -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 "$@" >>"$log" 2>&1
}

# Fetches the package lists; a mirror that hiccups gets three tries.
update()
{
	for pause in 2 10 0; do
		apt_get update && return 0
		sleep "$pause"
	done
	return 1
}

install_missing()
{
	missing=$(list "$@" | not_installed | tr '\n' ' ')
	[ -n "$missing" ] || return 0
	by_hand="install by hand: apt-get install --no-install-recommends $missing"

	if ! command -v apt-get >/dev/null; then
		echo "tools/packages.sh: no apt-get here; needed are (Debian's names): $missing" >&2
		return 1
	fi
	as_root=''
	if [ "$(id -u)" != 0 ]; then
		if command -v sudo >/dev/null && { sudo -n true 2>/dev/null || [ -t 0 ]; }; then
			as_root=sudo
		else
			echo "tools/packages.sh: neither root nor sudo; $by_hand" >&2
			return 1
		fi
	fi

	log=$(mktemp) || return 1
	trap 'rm -f "$log"' EXIT
	updated=''
	find_candidates "$missing"
	if [ -n "$unknown" ]; then
		# No candidate: the lists were never fetched, or are for another release.
		update && updated=yes
		find_candidates "$missing"
	fi
	[ -z "$unknown" ] ||
		echo "tools/packages.sh: not in this distribution, done without:$unknown" >&2
	[ -n "$available" ] || return 0

	echo "installing $(echo "$available" | wc -w) packages:$available" >&2
	# Word splitting of $available is wanted here and below.
	# shellcheck disable=SC2086
	apt_get install -y --no-install-recommends $available && return 0
	# Most often the lists are older than the mirror.
	[ -n "$updated" ] || update
	# shellcheck disable=SC2086
	apt_get install -y --no-install-recommends $available && return 0
	reason=$(grep -E '^(E|W|Err):' "$log" | tail -n 1)
	echo "tools/packages.sh: apt-get failed ($reason); $by_hand" >&2
	return 1
}

[ $# -ge 2 ] || { echo "$usage" >&2; exit 2; }
command=$1
shift
list "$@" >/dev/null || exit 2
case $command in
list)		list "$@" ;;
missing)	list "$@" | not_installed ;;
install)	install_missing "$@" ;;
*)		echo "$usage" >&2; exit 2 ;;
esac
