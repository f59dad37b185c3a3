// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
)

func TestTheMirrorComesFromTheSourcesOfTheMachine(t *testing.T) {
	for name, c := range map[string]struct {
		files  map[string]string
		mirror string
	}{
		"a machine without sources uses the default": {nil, defaultMirror},
		"one line": {
			map[string]string{"sources.list": "# deb http://old.example.com/debian bookworm main\n" +
				"deb-src http://src.example.com/debian bookworm main\ndeb http://one.example.com/debian bookworm main contrib\n"},
			"http://one.example.com/debian",
		},
		"one line with options": {
			map[string]string{"sources.list": "deb [ arch=amd64 signed-by=/k.gpg ] https://two.example.com/debian bookworm main\n"},
			"https://two.example.com/debian",
		},
		"stanzas, the first without a matching suite": {
			map[string]string{"sources.list.d/debian.sources": "Types: deb\nURIs: http://sec.example.com\nSuites: bookworm-security\n" +
				"Components: main\n\nTypes: deb\n# a note: here\nURIs: http://three.example.com/debian\n" +
				"Suites: bookworm bookworm-updates\nComponents: main\n"},
			"http://three.example.com/debian",
		},
		"another suite": {
			map[string]string{"sources.list": "deb http://archive.example.com/ubuntu noble main\n"},
			defaultMirror,
		},
		"files that debootstrap cannot read": {
			map[string]string{"sources.list": "deb cdrom:[Debian]/ bookworm main\ndeb file:/srv bookworm main\n"},
			defaultMirror,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			folder := t.TempDir()
			for file, content := range c.files {
				path := filepath.Join(folder, file)
				g.Expect(os.MkdirAll(filepath.Dir(path), 0o700)).To(Succeed())
				g.Expect(os.WriteFile(path, []byte(content), 0o600)).To(Succeed())
			}

			g.Expect(machineMirror(folder)).To(Equal(c.mirror))
		})
	}
}

func TestAllMissingPackagesAreNamedAtOnce(t *testing.T) {
	g := NewWithT(t)
	has := func(programs ...string) func(string) (string, error) {
		return func(name string) (string, error) {
			if slices.Contains(programs, name) {
				return name, nil
			}
			return "", exec.ErrNotFound
		}
	}

	g.Expect(missingPackages(has("debootstrap", "systemd-nspawn", "unshare"))).To(BeEmpty())
	g.Expect(missingPackages(has("unshare"))).
		To(Equal([]string{"debootstrap", "debian-archive-keyring", "systemd-container"}))
	g.Expect(missingPackages(has("debootstrap", "unshare"))).To(Equal([]string{"systemd-container"}))
}
