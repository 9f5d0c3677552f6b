# shellcheck shell=sh disable=SC2034 # variables are the caller's
# SPDX-License-Identifier: MIT
# suite.sh - to be sourced: where the packages of a suite of Debian or Ubuntu come from.

# Sets mirror, components, keyring, and debootstrap's script for the suite. 1: its keyring cannot be
# had.
suite_find() {	# SUITE
	mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
	components=main script=$1
	keyring=/usr/share/keyrings/debian-archive-keyring.gpg
	case $1 in
	bullseye | bookworm | trixie | sid) return 0 ;;
	esac
	mirror=${UBUNTU_MIRROR:-http://archive.ubuntu.com/ubuntu}
	components=main,universe script=gutsy	# that of all later ones
	keyring=/usr/share/keyrings/ubuntu-archive-keyring.gpg
	[ ! -e $keyring ] || return 0
	# not every Debian has the package
	keyring=${XDG_CACHE_HOME:-$HOME/.cache}/lowbits/ubuntu-archive-keyring.gpg
	[ ! -e "$keyring" ] || return 0
	suite_fetch_keyring "$keyring"
}

suite_fetch_keyring() {	# FILE
	unpacked=$(mktemp -d)
	digest=c377ccf26964f4c206c05c0bc7adb708e031beb919bb9a0ff63af983d064cd66
	curl -sf -m 60 -o "$unpacked/keyring.deb" \
		"${mirror}/pool/main/u/ubuntu-keyring/ubuntu-keyring_2023.11.28.1build1_all.deb" &&
		echo "$digest  $unpacked/keyring.deb" | sha256sum --quiet -c - &&
		dpkg -x "$unpacked/keyring.deb" "$unpacked" &&
		mkdir -p "$(dirname "$1")" &&
		cp "$unpacked/usr/share/keyrings/ubuntu-archive-keyring.gpg" "$1"
	fetched=$?
	rm -rf "$unpacked"
	return $fetched
}
