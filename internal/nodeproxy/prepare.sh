#!/bin/sh
# Written by Cluster API Provider for VMware Cloud Director.
# Gives the proxy to package managers that have one file for all their settings. It does not change a proxy that the image sets.
# An argument is put before every path.
set -eu

# The settings, without characters that dnf and login shells of SUSE would expand.
http_proxy=''
https_proxy=''
no_proxy=''
# Not empty if a URL contains a password.
password=''

root=${1:-}

# hide FILE: only root reads a file with a password.
hide() {
	if [ -n "$password" ]; then
		chmod 0600 "$1"
	fi
}

# set_dnf FILE: adds the proxy to section [main]. dnf has one for http and https.
set_dnf() {
	if ! grep -q '^\[main\]' "$1" 2>/dev/null; then
		printf '[main]\n' >>"$1"
	fi
	if sed -n '/^\[main\]/,/^\[/p' "$1" | grep -q '^proxy[[:space:]]*='; then
		return
	fi
	hide "$1"
	printf '# Written by Cluster API Provider for VMware Cloud Director.\nproxy=%s\n' "${https_proxy:-$http_proxy}" |
		sed -i '/^\[main\]/r /dev/stdin' "$1"
}

# set_zypper FILE: replaces the settings of SUSE. Login shells of SUSE need this order: the first line enables the others.
set_zypper() {
	touch "$1"
	if grep -q '^HTTPS\{0,1\}_PROXY="\{0,1\}[^"]' "$1"; then
		return
	fi
	hide "$1"
	sed -i '/^\(PROXY_ENABLED\|HTTP_PROXY\|HTTPS_PROXY\|NO_PROXY\)=/d' "$1"
	{
		printf '# Written by Cluster API Provider for VMware Cloud Director.\n'
		printf 'PROXY_ENABLED="yes"\nHTTP_PROXY="%s"\nHTTPS_PROXY="%s"\nNO_PROXY="%s"\n' \
			"$http_proxy" "$https_proxy" "$no_proxy"
	} >>"$1"
}

if [ -z "$http_proxy$https_proxy" ]; then
	exit 0
fi
profile=$root/etc/profile.d/zz-proxy.sh
if [ -z "$password" ] && [ -f "$profile" ]; then
	chmod 0644 "$profile"
fi
apt=$root/etc/apt/apt.conf.d/95proxy
if [ -f "$apt" ]; then
	hide "$apt"
fi
if [ -d "$root/etc/dnf" ]; then
	set_dnf "$root/etc/dnf/dnf.conf"
fi
if [ -d "$root/etc/zypp" ]; then
	set_zypper "$root/etc/sysconfig/proxy"
fi
