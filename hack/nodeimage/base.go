// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
)

const (
	suite = "bookworm"
	// defaultMirror is for machines that do not run this suite of Debian.
	defaultMirror = "http://deb.debian.org/debian"
)

// packages returns the packages that a node requires in addition to Debian's essential ones. debootstrap does not
// resolve virtual packages: cloud-init requires python3-cffi-backend through one. Without udev, cloud-init's netplan
// renderer fails.
func packages() []string {
	return []string{
		"systemd", "systemd-sysv", "dbus", "udev", "cloud-init", "python3-cffi-backend", "netplan.io",
		"systemd-resolved", "iproute2", "iptables", "nftables", "conntrack", "socat", "ethtool", "runc", "procps",
		"kmod", "curl", "ca-certificates",
		// For images of Kubernetes' tests, and for troubleshooting on a node.
		"netcat-openbsd", "bind9-dnsutils", "busybox-static",
	}
}

// base builds the root file system of unmodified Debian packages.
func (b *builder) base(ctx context.Context) (string, error) {
	hash := digest(append([]string{suite, runtime.GOARCH}, packages()...)...)
	return b.artifact("Debian root filesystem", "base", hash, func(dir string) error {
		if err := canDebootstrap(); err != nil {
			return err
		}
		root := filepath.Join(dir, "rootfs")
		if err := b.debootstrap(ctx, root); err != nil {
			return fmt.Errorf("installing Debian %s: %w", suite, err)
		}
		return tidy(root)
	})
}

func canDebootstrap() error {
	switch {
	case runtime.GOOS != "linux":
		return errors.New("node images are made on Linux")
	case os.Geteuid() != 0:
		return errors.New("node images need root: run this with sudo -E")
	}
	if missing := missingPackages(exec.LookPath); len(missing) > 0 {
		return fmt.Errorf("programs are missing; run: apt-get install -y --no-install-recommends %s",
			strings.Join(missing, " "))
	}
	return nil
}

// missingPackages returns the Debian packages of missing programs: those that build images, and the one that boots
// them. Users would otherwise notice the latter only after the half hour of the first build.
func missingPackages(look func(string) (string, error)) []string {
	var missing []string
	for _, needed := range []struct {
		command  string
		packages []string
	}{
		{"debootstrap", []string{"debootstrap", "debian-archive-keyring"}},
		{"systemd-nspawn", []string{"systemd-container"}},
		{"unshare", []string{"util-linux"}},
	} {
		if _, err := look(needed.command); err != nil {
			missing = append(missing, needed.packages...)
		}
	}
	return missing
}

func (b *builder) debootstrap(ctx context.Context, root string) error {
	mirror := b.mirror
	if mirror == "" {
		mirror = machineMirror("/etc/apt")
	}
	// Separate namespaces: mounts and processes end with debootstrap, and debootstrap ends with this process.
	cmd := exec.CommandContext(ctx, "unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--",
		"debootstrap", "--variant=minbase", "--force-check-gpg", "--include="+strings.Join(packages(), ","), suite,
		root, mirror)
	var out bytes.Buffer
	cmd.Stdout = &out
	cmd.Stderr = &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	// The signal is sent when the thread that starts the process ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("debootstrap from %s: %w\n%s", mirror, err, lastLines(out.String(), 12))
	}
	return nil
}

// tidy removes downloaded packages and package lists, which nodes do not need.
func tidy(root string) error {
	for _, pattern := range []string{"var/cache/apt/archives/*.deb", "var/cache/apt/*.bin", "var/lib/apt/lists/*"} {
		paths, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			return err
		}
		for _, path := range paths {
			if err := os.RemoveAll(path); err != nil {
				return fmt.Errorf("removing downloads: %w", err)
			}
		}
	}
	return nil
}

// machineMirror returns the mirror from which the machine gets this suite of Debian.
func machineMirror(folder string) string {
	var files []string
	for _, pattern := range []string{"sources.list", "sources.list.d/*.list", "sources.list.d/*.sources"} {
		found, _ := filepath.Glob(filepath.Join(folder, pattern)) // the patterns are valid
		files = append(files, found...)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		read := mirrorInList
		if strings.HasSuffix(file, ".sources") {
			read = mirrorInStanzas
		}
		if mirror := read(string(content)); mirror != "" {
			return mirror
		}
	}
	return defaultMirror
}

// mirrorInList parses apt's one-line format: deb [options] URI suite components.
func mirrorInList(content string) string {
	for line := range strings.Lines(content) {
		fields := strings.Fields(line)
		if len(fields) < 1 || fields[0] != "deb" {
			continue
		}
		if end := slices.IndexFunc(fields, func(f string) bool { return strings.HasSuffix(f, "]") }); end > 0 {
			fields = fields[end:]
		}
		if len(fields) > 3 && fields[2] == suite && usable(fields[1]) && slices.Contains(fields[3:], "main") {
			return fields[1]
		}
	}
	return ""
}

// mirrorInStanzas parses apt's deb822 format.
func mirrorInStanzas(content string) string {
	for stanza := range strings.SplitSeq(content, "\n\n") {
		values := map[string][]string{}
		for line := range strings.Lines(stanza) {
			if key, value, ok := strings.Cut(line, ":"); ok && !strings.HasPrefix(line, "#") {
				values[key] = strings.Fields(value)
			}
		}
		uris := values["URIs"]
		if slices.Contains(values["Suites"], suite) && slices.Contains(values["Components"], "main") &&
			slices.Contains(values["Types"], "deb") && len(uris) > 0 && usable(uris[0]) {
			return uris[0]
		}
	}
	return ""
}

func usable(uri string) bool {
	return strings.HasPrefix(uri, "http://") || strings.HasPrefix(uri, "https://")
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
