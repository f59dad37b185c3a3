// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// A stage of the Dockerfile, including the settings of its base stage.
type stage struct {
	from, name      string
	user            string
	workdir         string
	entrypoint, cmd []string
	ports, env      []string
	labels          map[string]string
	copies          []string
}

type instruction struct{ name, rest string }

// instructions returns the instructions of the Dockerfile, with continued lines joined.
func instructions(g *WithT) []instruction {
	raw, err := os.ReadFile("../../Dockerfile")
	g.Expect(err).NotTo(HaveOccurred())
	text := regexp.MustCompile(`(?m)^#.*\n`).ReplaceAllString(string(raw), "")
	var all []instruction
	for line := range strings.SplitSeq(strings.ReplaceAll(text, "\\\n", " "), "\n") {
		if name, rest, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			all = append(all, instruction{name, strings.TrimSpace(rest)})
		}
	}
	return all
}

var label = regexp.MustCompile(`([a-z.]+)="([^"]*)"`)

func (s *stage) apply(g *WithT, i instruction) {
	list := func() (words []string) {
		g.Expect(json.Unmarshal([]byte(i.rest), &words)).To(Succeed(), "%s %s: only a list is run without a shell",
			i.name, i.rest)
		return words
	}
	switch i.name {
	case "USER":
		s.user = i.rest
	case "WORKDIR":
		s.workdir = i.rest
	case "ENV":
		s.env = append(s.env, i.rest)
	case "EXPOSE":
		s.ports = strings.Fields(i.rest)
	case "ENTRYPOINT":
		s.entrypoint = list()
	case "CMD":
		s.cmd = list()
	case "COPY":
		s.copies = append(s.copies, i.rest)
	case "LABEL":
		for _, match := range label.FindAllStringSubmatch(i.rest, -1) {
			s.labels[match[1]] = match[2]
		}
	}
}

func stages(g *WithT) (all map[string]*stage, last string) {
	all = map[string]*stage{}
	var now *stage
	for _, i := range instructions(g) {
		if i.name != "FROM" {
			now.apply(g, i)
			continue
		}
		words := slices.DeleteFunc(strings.Fields(i.rest), func(w string) bool { return strings.HasPrefix(w, "--") })
		g.Expect(words).To(HaveLen(3), "every stage has a name")
		now = &stage{labels: map[string]string{}}
		if below := all[words[0]]; below != nil {
			copied := *below
			copied.labels = maps.Clone(below.labels)
			now = &copied
		}
		now.from = words[0]
		now.name = words[2]
		last = words[2]
		all[now.name] = now
	}
	return all, last
}

func TestTheDockerfileMatchesTheImages(t *testing.T) {
	all, last := stages(NewWithT(t))
	NewWithT(t).Expect(last).To(Equal("manager"), "the default target")
	for _, p := range programs() {
		t.Run(p.name, func(t *testing.T) {
			g := NewWithT(t)
			s := all[p.name]
			g.Expect(s).NotTo(BeNil())

			g.Expect(s.user).To(Equal(user))
			g.Expect(s.workdir).To(Equal("/"))
			g.Expect(s.env).To(Equal([]string{"PATH=/"}))
			g.Expect(s.entrypoint).To(Equal([]string{p.binary}))
			g.Expect(s.cmd).To(Equal(p.args))
			g.Expect(s.ports).To(Equal(p.ports))
			g.Expect(s.copies).To(Equal([]string{"--from=build-" + p.name + " /rootfs /"}),
				"the files match those of make images")
			want := build{version: "$VERSION", commit: "$COMMIT"}.labels(p.title, p.description)
			delete(want, "org.opencontainers.image.created") // A container engine records the time itself.
			g.Expect(s.labels).To(Equal(want))
		})
	}
}

// TestTheDockerfileIsSafe checks the rules of Dockerfile linters.
func TestTheDockerfileIsSafe(t *testing.T) {
	g := NewWithT(t)
	all, _ := stages(g)
	pinned := regexp.MustCompile(`^golang:[0-9]+\.[0-9]+\.[0-9]+-[a-z]+$`)
	for _, s := range all {
		if s.from != "scratch" && all[s.from] == nil {
			g.Expect(s.from).To(MatchRegexp(pinned.String()), "a full version")
		}
	}
	programsByStage := map[string]bool{}
	for _, i := range instructions(g) {
		g.Expect(i.name).NotTo(BeElementOf("ADD", "MAINTAINER", "ONBUILD", "SHELL"))
		if i.name == "RUN" {
			g.Expect(i.rest).NotTo(MatchRegexp(`\b(sudo|curl|wget|apt-get|chmod 777)\b`))
			found := regexp.MustCompile(`--program ([a-z]+) `).FindStringSubmatch(i.rest)
			g.Expect(found).NotTo(BeNil(), i.rest)
			programsByStage[found[1]] = true
		}
	}
	for _, p := range programs() {
		g.Expect(programsByStage).To(HaveKey(p.name))
		g.Expect(all["build-"+p.name]).NotTo(BeNil())
	}
	ignored, err := os.ReadFile("../../.dockerignore")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(strings.Fields(string(ignored))).To(ContainElements(".git", "out"))
}

// TestManifestsMatchTheImages checks the programs and users in the manifests.
func TestManifestsMatchTheImages(t *testing.T) {
	for _, tc := range []struct{ program, manifest string }{
		{"manager", "../../config/manager/manager.yaml"},
		{"cpi", "../../addons/manifests/ccm.yaml"},
	} {
		t.Run(tc.program, func(t *testing.T) {
			g := NewWithT(t)
			raw, err := os.ReadFile(tc.manifest)
			g.Expect(err).NotTo(HaveOccurred())
			i := slices.IndexFunc(programs(), func(p program) bool { return p.name == tc.program })

			g.Expect(string(raw)).To(MatchRegexp(`command:\n\s+- ` + programs()[i].binary + `\n`))
			g.Expect(regexp.MustCompile(`runAsUser: (\d+)`).FindAllStringSubmatch(string(raw),
				-1)).To(HaveEach(HaveExactElements(Not(BeEmpty()), "65532")))
			g.Expect(string(raw)).To(ContainSubstring("runAsNonRoot: true"))
			g.Expect(string(raw)).To(ContainSubstring("readOnlyRootFilesystem: true"))
		})
	}
}
