// SPDX-License-Identifier: Apache-2.0

package ccmconfig

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// parts is a schema with named sections, as in INI files.
type parts struct {
	Global struct {
		User     string   `json:"user,omitzero"`
		Password Secret   `json:"password,omitzero"`
		Insecure bool     `json:"insecureFlag,omitzero" alias:"insecure-flag"`
		Names    []string `json:"names,omitzero" commas:"true" env:"NAMES"`
	} `json:"global,omitzero"`
	Parts map[string]*part `json:"part,omitzero" alias:"virtualpart"`
	Old   Ignored          `json:"old,omitzero" ignored:"it is old"`
}

type part struct {
	Server string `json:"server,omitzero" required:"name it"`
	Port   int    `json:"port,omitzero" default:"443"`
}

func decodeINI(t *testing.T, file string) (parts, *Report) {
	t.Helper()
	content, err := ParseINI([]byte(file))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	var p parts
	return p, DecodeNode(content, &p, Environment{Getenv: func(string) string { return "" }})
}

func TestINI(t *testing.T) {
	g := NewWithT(t)
	file := `
; a comment
# another
[Global]
user = administrator@vsphere.local ; who
password = "a#b;c\"d\\ "
Insecure-Flag
names = "a, b",c
[VirtualPart "10.0.0.1"]
server = x
[VirtualPart "Ten"] # two
port = "8443"
[virtualpart "Ten"]
server = y
[Old]
what = ever
`
	content, err := ParseINI([]byte(file))
	g.Expect(err).NotTo(HaveOccurred())
	var p parts
	report := DecodeNode(content, &p, Environment{})

	g.Expect(report.Err()).NotTo(HaveOccurred())
	g.Expect(report.Warnings).To(ConsistOf("old (line 15) has no effect: it is old; remove it"))
	g.Expect(p.Global.User).To(Equal("administrator@vsphere.local"))
	g.Expect(string(p.Global.Password)).To(Equal(`a#b;c"d\`), "text is trimmed")
	g.Expect(p.Global.Insecure).To(BeTrue())
	g.Expect(p.Global.Names).To(Equal([]string{"a", "b", "c"}))
	g.Expect(p.Parts).To(HaveLen(2))
	g.Expect(*p.Parts["10.0.0.1"]).To(Equal(part{"x", 443}))
	g.Expect(*p.Parts["Ten"]).To(Equal(part{"y", 8443}))
}

func TestInvalidINIFiles(t *testing.T) {
	g := NewWithT(t)

	_, report := decodeINI(t, "[Global]\nuser = a\nuser = b\ninsecure-flag = 2\ncolour = red\n[VirtualPart \"x\"]\nport = a\nServr = b\n")

	g.Expect(strings.Split(report.Err().Error(), "\n")).To(Equal([]string{
		"part.x.server: is missing: name it",
		"global.user (line 3): is duplicated: keep one",
		`global.insecure-flag (line 4): is "2", but must be true or false`,
		"global.colour (line 5): is not a key of the configuration: remove it, or correct its spelling",
		`virtualpart.x.port (line 7): is "a", but must be a whole number`,
		"virtualpart.x.servr (line 8): is not a key of the configuration: remove it, or correct its spelling",
	}))
}

func TestFilesThatAreNotINI(t *testing.T) {
	g := NewWithT(t)

	_, err := ParseINI([]byte("user = a\n[Global\n[Global]\nuser = \"a\npassword = a\\b\nca-file = C:\\\nwhat is this = 1\n= 2\n"))

	g.Expect(strings.Split(err.Error(), "\n")).To(Equal([]string{
		"line 1: is before the first section: begin with a line such as [Global]",
		`line 2: is not a header of the form [section] or [section "name"]`,
		"line 4: user: has an unclosed quotation mark",
		`line 5: password: contains \b: write a backslash as \\`,
		`line 6: ca-file: ends with a backslash: write a value in one line, and a backslash as \\`,
		"line 7: is not a line of the form key = value",
		"line 8: is not a line of the form key = value",
	}))
}

func TestAnINIFileIsRecognized(t *testing.T) {
	for file, want := range map[string]bool{
		"":                     false,
		"# a\n\n[Global]\n":    true,
		"global:\n  user: a\n": false,
		"; a\n[x]":             true,
		"# only\n":             false,
	} {
		NewWithT(t).Expect(IsINI([]byte(file))).To(Equal(want), file)
	}
}

func TestNamedSectionsInYAML(t *testing.T) {
	g := NewWithT(t)
	var p parts

	report, err := Decode([]byte("part:\n  a: {server: x}\n  a: {}\n  b: {servr: y}\n"), &p, Environment{Getenv: func(name string) string {
		return map[string]string{"NAMES": "a,b"}[name]
	}})

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(p.Global.Names).To(Equal([]string{"a", "b"}), "the environment can contain lists, too")
	g.Expect(strings.Split(report.Err().Error(), "\n")).To(Equal([]string{
		"part.b.server: is missing: name it",
		"part.a (line 3): is duplicated: keep one",
		"part.b.servr (line 4): is not a key of the configuration: remove it, or correct its spelling",
	}))
	g.Expect(Keys(&p)).To(ContainElement(HaveField("Path", "part.<name>.server")))
}

func FuzzParseINI(f *testing.F) {
	f.Add("[Global]\nuser = \"a\\\"b\" ; c\n[VirtualPart \"x\"]\n")
	f.Fuzz(func(_ *testing.T, file string) {
		if content, err := ParseINI([]byte(file)); err == nil {
			_ = DecodeNode(content, &parts{}, Environment{})
		}
	})
}
