// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

func TestAnArtifactIsBuiltOnce(t *testing.T) {
	g := NewWithT(t)
	var out bytes.Buffer
	b := &builder{dir: t.TempDir(), out: &out}
	made := 0
	fill := func(dir string) error {
		made++
		return os.WriteFile(filepath.Join(dir, "file"), nil, 0o600)
	}

	g.Expect(b.artifact("The thing", "thing", "abc", fill)).To(Equal("thing-abc"))
	g.Expect(out.String()).To(ContainSubstring("The thing: done in"))
	out.Reset()
	g.Expect(b.artifact("The thing", "thing", "abc", fill)).To(Equal("thing-abc"))

	g.Expect(made).To(Equal(1))
	g.Expect(out.String()).To(BeEmpty())
	g.Expect(filepath.Join(b.dir, "thing-abc", "file")).To(BeAnExistingFile())
}

func TestAnIncompleteArtifactIsDiscarded(t *testing.T) {
	g := NewWithT(t)
	b := &builder{dir: t.TempDir(), out: &bytes.Buffer{}}
	broken := errors.New("broken")

	_, err := b.artifact("The thing", "thing", "abc", func(dir string) error {
		return errors.Join(os.WriteFile(filepath.Join(dir, "half"), nil, 0o600), broken)
	})

	g.Expect(err).To(MatchError(broken))
	g.Expect(filepath.Join(b.dir, "thing-abc")).NotTo(BeADirectory())
	unlock, err := b.lock(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	unlock()
	g.Expect(filepath.Glob(filepath.Join(b.dir, unfinished+"*"))).To(BeEmpty(), "the next run removes it")
}

func TestADigestSeparatesItsParts(t *testing.T) {
	g := NewWithT(t)

	g.Expect(digest("ab", "c")).To(Equal(digest("ab", "c")))
	g.Expect(digest("ab", "c")).NotTo(Equal(digest("a", "bc")))
}

func TestAHashOfSourcesIgnoresTests(t *testing.T) {
	g := NewWithT(t)
	root := t.TempDir()
	write := func(name, content string) {
		path := filepath.Join(root, name)
		g.Expect(os.MkdirAll(filepath.Dir(path), 0o700)).To(Succeed())
		g.Expect(os.WriteFile(path, []byte(content), 0o600)).To(Succeed())
	}
	hash := func() string {
		found, err := hashOf(root, "code", "main.go")
		g.Expect(err).NotTo(HaveOccurred())
		return found
	}
	write("main.go", "package main")
	write("code/a.go", "package code")
	before := hash()

	write("code/a_test.go", "package code")
	write("code/testdata/x.json", "{}")
	write("code/.a.go.swp", "")
	write("docs/page.md", "")
	g.Expect(hash()).To(Equal(before))

	write("code/deep/b.yaml", "a: b")
	changed := hash()
	g.Expect(changed).NotTo(Equal(before))
	write("main.go", "package main // changed")
	g.Expect(hash()).NotTo(Equal(changed))
}
