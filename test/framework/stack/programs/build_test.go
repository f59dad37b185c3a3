// SPDX-License-Identifier: Apache-2.0

package programs

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"
)

// tiny returns a group with a separate module. Its build takes a second and downloads nothing.
func tiny(t *testing.T, source string) (Options, []Group, *bytes.Buffer) {
	t.Helper()
	g := NewWithT(t)
	dir := t.TempDir()
	folder := filepath.Join(dir, "source", "tiny")
	g.Expect(os.MkdirAll(folder, 0o700)).To(Succeed())
	for name, content := range map[string]string{
		"go.mod":  "module example.com/tiny\n\ngo 1.26.0\n",
		"go.sum":  "",
		"main.go": source,
	} {
		g.Expect(os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600)).To(Succeed())
	}
	out := &bytes.Buffer{}
	opts := Options{Cache: filepath.Join(dir, "cache"), Source: filepath.Join(dir, "source"), Out: out}
	return opts, []Group{{
		Name:     "tiny",
		Ldflags:  "-s -w",
		Programs: []Program{{Name: "tiny", Package: "example.com/tiny"}},
	}}, out
}

const good = "package main\n\nfunc main() {}\n"

func TestBuild(t *testing.T) {
	t.Run("builds once and reports it", func(t *testing.T) {
		g := NewWithT(t)
		opts, groups, out := tiny(t, good)
		set, err := build(t.Context(), opts, groups)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(set.Bin("tiny")).To(BeAnExistingFile())
		g.Expect(filepath.Join(set.Dir(), "tiny")).To(BeAnExistingFile())
		g.Expect(out.String()).To(And(HavePrefix("To build, once: tiny. From empty caches that takes about 2 minutes"),
			ContainSubstring("Building tiny (1 of 1): done in")))

		out.Reset()
		again, err := build(t.Context(), opts, groups)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(again.Bin("tiny")).To(Equal(set.Bin("tiny")))
		g.Expect(out.String()).To(BeEmpty())
	})
	t.Run("rebuilds when a pinned version changes", func(t *testing.T) {
		g := NewWithT(t)
		opts, groups, _ := tiny(t, good)
		before, err := build(t.Context(), opts, groups)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(os.WriteFile(filepath.Join(opts.Source, "tiny", "go.mod"),
			[]byte("module example.com/tiny\n\ngo 1.26.1\n"), 0o600)).To(Succeed())
		after, err := build(t.Context(), opts, groups)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(after.Bin("tiny")).NotTo(Equal(before.Bin("tiny")))
		g.Expect(after.Dir()).NotTo(Equal(before.Dir()))
	})
	t.Run("removes the leftovers of a killed build", func(t *testing.T) {
		g := NewWithT(t)
		opts, groups, _ := tiny(t, good)
		set, _, err := plan(groups, opts.Source, opts.Cache)
		g.Expect(err).NotTo(HaveOccurred())
		half := set.Bin("tiny") + tempSuffix
		g.Expect(os.MkdirAll(filepath.Dir(half), 0o700)).To(Succeed())
		g.Expect(os.WriteFile(half, []byte("half a program"), 0o600)).To(Succeed())
		g.Expect(build(t.Context(), opts, groups)).NotTo(BeNil())
		g.Expect(half).NotTo(BeAnExistingFile())
	})
	t.Run("concurrent calls build once", func(t *testing.T) {
		g := NewWithT(t)
		opts, groups, _ := tiny(t, good)
		opts.Out = nil
		opts, err := opts.withDefaults()
		g.Expect(err).NotTo(HaveOccurred())
		var wait sync.WaitGroup
		errs := make([]error, 2)
		for i := range errs {
			wait.Go(func() { _, errs[i] = build(t.Context(), opts, groups) })
		}
		wait.Wait()
		g.Expect(errors.Join(errs...)).NotTo(HaveOccurred())
	})
	t.Run("a broken program is an error with the output of the compiler", func(t *testing.T) {
		g := NewWithT(t)
		opts, groups, _ := tiny(t, "package main\n\nfunc main() { nonsense() }\n")
		_, err := build(t.Context(), opts, groups)
		g.Expect(err).To(MatchError(And(ContainSubstring("building tiny"), ContainSubstring("undefined: nonsense"))))
	})
	t.Run("an interrupted build is an error", func(t *testing.T) {
		g := NewWithT(t)
		opts, groups, _ := tiny(t, good)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := build(ctx, opts, groups)
		g.Expect(err).To(MatchError(context.Canceled))
	})
}

func TestErrorOfAFullDiskNamesTheRemedy(t *testing.T) {
	for name, err := range map[string]error{
		"reported by the system":   &os.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC},
		"reported by the compiler": errors.New("link: flush: no space left on device"),
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			explained := explain(err, "/the/cache")
			g.Expect(explained).To(MatchError(And(ContainSubstring("the disk is full"),
				ContainSubstring("/the/cache"))))
			g.Expect(errors.Is(explained, err)).To(BeTrue())
		})
	}
}

func TestSourceIsFoundFromAnyFolderOfTheRepository(t *testing.T) {
	g := NewWithT(t)
	here, err := filepath.Abs(".")
	g.Expect(err).NotTo(HaveOccurred())
	for _, from := range []string{".", "..", "../..", "../../..", "kubernetes"} {
		g.Expect(Source(from)).To(Equal(here), from)
	}
	_, err = Source(t.TempDir())
	g.Expect(err).To(MatchError(ContainSubstring("inside the repository")))
}

func TestEveryProviderHasComponents(t *testing.T) {
	g := NewWithT(t)
	source, err := Source(".")
	g.Expect(err).NotTo(HaveOccurred())
	set, _, err := plan(groups(), source, t.TempDir())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(set.components).To(HaveLen(4))
	g.Expect(set.missing()).To(HaveLen(13))
	_, err = set.Components(Kubectl)
	g.Expect(err).To(HaveOccurred())
}

func TestOnlyGroupsOfTheNamedProgramsAreBuilt(t *testing.T) {
	for name, test := range map[string]struct {
		only []string
		want []string
	}{
		"nil means all":                         {want: []string{"etcd", "kubernetes", "clusterapi", "ipam"}},
		"one program selects its group":         {only: []string{Clusterctl}, want: []string{"clusterapi"}},
		"the groups keep their order":           {only: []string{IPAMManager, Etcd}, want: []string{"etcd", "ipam"}},
		"an empty list selects no group at all": {only: []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, g := range only(groups(), test.only) {
				got = append(got, g.Name)
			}
			NewWithT(t).Expect(got).To(Equal(test.want))
		})
	}
}

func TestInstalledProgramsOfThePinnedVersionAreCopied(t *testing.T) {
	for name, test := range map[string]struct {
		inAssets, inPath string
		reuse            bool
		copied           string
	}{
		"from the folder of assets": {inAssets: "v1.2.3", inPath: "v1.2.3", reuse: true, copied: "assets"},
		"from PATH":                 {inPath: "v1.2.3", reuse: true, copied: "path"},
		"from PATH if the version in assets differs": {inAssets: "v1.2.2", inPath: "v1.2.3", reuse: true, copied: "path"},
		"a longer version does not match":            {inPath: "v1.2.30", reuse: true},
		"none without Present":                       {inAssets: "v1.2.3", inPath: "v1.2.3"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			opts, groups, out := tiny(t, good)
			groups[0].Programs[0].Version = "v1.2.3"
			groups[0].Programs[0].VersionArgs = []string{"--version"}
			dir := t.TempDir()
			for folder, version := range map[string]string{"assets": test.inAssets, "path": test.inPath} {
				g.Expect(os.Mkdir(filepath.Join(dir, folder), 0o700)).To(Succeed())
				if version != "" {
					script := "#!/bin/sh\necho tiny " + version + "\n"
					g.Expect(os.WriteFile(filepath.Join(dir, folder, "tiny"), []byte(script), 0o700)).To(Succeed())
				}
			}
			t.Setenv("PATH", filepath.Join(dir, "path")+string(os.PathListSeparator)+os.Getenv("PATH"))
			opts.Assets = filepath.Join(dir, "assets")
			opts.Present = test.reuse

			set, err := build(t.Context(), opts, groups)

			g.Expect(err).NotTo(HaveOccurred())
			if test.copied == "" {
				g.Expect(out.String()).To(ContainSubstring("Building tiny"))
				return
			}
			g.Expect(out.String()).To(Equal("Taking tiny v1.2.3 from " +
				filepath.Join(dir, test.copied, "tiny") + " (1 of 1)\n"))
			g.Expect(os.ReadFile(set.Bin("tiny"))).To(HavePrefix("#!/bin/sh"))
		})
	}
}

func TestEtcdVersionMatchesTheModule(t *testing.T) {
	g := NewWithT(t)
	pinned, err := os.ReadFile(filepath.Join("etcd", "go.mod"))
	g.Expect(err).NotTo(HaveOccurred())

	g.Expect(string(pinned)).To(ContainSubstring("go.etcd.io/etcd/server/v3 " + EtcdVersion + " "))
}
