// SPDX-License-Identifier: Apache-2.0

package vmname_test

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vmname"
)

func input() vmname.Input {
	return vmname.Input{
		Cluster: "prod",
		Machine: vmname.Object{
			Name:      "prod-md-0-abcde-fghij",
			Namespace: "team-a",
			UID:       "u1",
			Labels:    map[string]string{"cluster.x-k8s.io/deployment-name": "prod-md-0", "zone": "a"},
		},
		VCDMachine: vmname.Object{Name: "prod-md-0-abcde-fghij", Namespace: "team-a", UID: "u2"},
	}
}

func TestNames(t *testing.T) {
	tests := []struct{ name, template, want string }{
		{"without a template the Machine's name", "", "prod-md-0-abcde-fghij"},
		{"Cluster API's syntax", "{{ .cluster.name }}-{{ .machineDeployment.name }}", "prod-prod-md-0"},
		{"syntax in a manifest", "acme-{{ .machine.metadata.name | trunc -5 }}", "acme-fghij"},
		{"Go's syntax, as in CAPVCD", "vm-{{ .machine.Name | sha256sum | trunc 7 }}", "vm-ec2c380"},
		{
			"a label",
			`{{ index .machine.metadata.labels "zone" }}-{{ .vcdMachine.Name | replace "prod" "p" }}`,
			"a-p-md-0-abcde-fghij",
		},
		{"a choice", `{{ if .kubeadmControlPlane.name }}cp{{ else }}worker{{ end }}-{{ with .cluster }}{{ .name }}{{ end }}`, "worker-prod"},
		{"surrounding spaces", "  {{ .machine.name }}\n", "prod-md-0-abcde-fghij"},
		{"a domain", "{{ .machine.name | trunc -5 }}.nodes.acme.example", "fghij.nodes.acme.example"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			got, err := vmname.Render(tt.template, input())
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(tt.want))
		})
	}
}

func TestRandomIsStableForTheLifetimeOfAMachine(t *testing.T) {
	g := NewWithT(t)
	const text = "{{ .cluster.name }}-{{ .random }}"
	first, err := vmname.Render(text, input())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(first).To(MatchRegexp(`^prod-[a-z0-9]{5}$`))

	again, err := vmname.Render(text, input())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(again).To(Equal(first))

	other := input()
	other.VCDMachine.UID = "u3"
	third, err := vmname.Render(text, other)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(third).NotTo(Equal(first))
}

func TestTemplatesWithInvalidNames(t *testing.T) {
	tests := []struct{ name, template, want string }{
		{"broken", "{{", "parsing"},
		{"environment", `{{ env "HOME" }}`, "env"},
		{"chance", `{{ randAlphaNum 5 }}`, "randAlphaNum"},
		{"time", `{{ now }}`, "now"},
		{"an unknown field", "{{ .nope }}", "nope"},
		{"capitals", "Upper", "cannot be the name"},
		{"an underscore", "a_b", "cannot be the name"},
		{"digits only", "12345", "must contain a letter"},
		{"nothing", " ", "cannot be the name"},
		{"too long", strings.Repeat("a", 64), "longer than the 63"},
		{"much too long", `{{ printf "%0999999d" 1 }}`, "produces more than"},
		{"a loop", `{{ range $i := 1000000000000 }}{{ end }}a`, "must not contain"},
		{"a loop in a choice", `{{ if true }}{{ range $i := 1000000000000 }}{{ end }}{{ end }}a`, "must not contain"},
		{
			"a recursive template",
			`{{ define "a" }}{{ template "a" }}{{ end }}{{ template "a" }}`,
			"must not define",
		},
		{"repetition", `{{ repeat 1000000000 "a" }}`, "repeat"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			began := time.Now()
			_, err := vmname.Render(tt.template, input())
			g.Expect(err).To(MatchError(ContainSubstring(tt.want)))
			g.Expect(time.Since(began)).To(BeNumerically("<", 10*time.Second))
		})
	}
}

func TestTemplatesForManyMachines(t *testing.T) {
	g := NewWithT(t)
	g.Expect(vmname.Validate("")).To(Succeed())
	g.Expect(vmname.Validate("{{ .cluster.name }}-{{ .random }}")).To(Succeed())
	g.Expect(vmname.Validate("{{ .machine.Name | trunc 60 }}")).To(Succeed())
	g.Expect(vmname.Validate("{{ .cluster.name }}-worker")).To(MatchError(ContainSubstring("the same name")))
	g.Expect(vmname.Validate("{{ .machine.name }}_x")).To(MatchError(ContainSubstring("demo-md-0-x7k2p-4sgzc_x")))
}

func TestComputerNameIsTheFirstPart(t *testing.T) {
	g := NewWithT(t)
	g.Expect(vmname.ComputerName("a.b.c")).To(Equal("a"))
	g.Expect(vmname.ComputerName("a")).To(Equal("a"))
}

func FuzzRender(f *testing.F) {
	for _, seed := range []string{
		"", "{{ .machine.name }}", "{{ .random | trunc 3 }}x",
		"{{ with .cluster }}{{ .name }}{{ end }}", `{{ regexReplaceAll "a" .machine.name "b" }}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		name, err := vmname.Render(text, input())
		if again, errAgain := vmname.Render(text, input()); again != name || (err == nil) != (errAgain == nil) {
			t.Fatalf("%q and %q", name, again)
		}
		if err == nil && (name == "" || len(name) > vmname.MaxLength) {
			t.Fatalf("%q", name)
		}
	})
}
