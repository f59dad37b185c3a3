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
		{name: "without a template the Machine's name", want: "prod-md-0-abcde-fghij"},
		{name: "Cluster API's syntax", template: "{{ .cluster.name }}-{{ .machineDeployment.name }}", want: "prod-prod-md-0"},
		{name: "syntax in a manifest", template: "acme-{{ .machine.metadata.name | trunc -5 }}", want: "acme-fghij"},
		{name: "Go's syntax, as in CAPVCD", template: "vm-{{ .machine.Name | sha256sum | trunc 7 }}", want: "vm-ec2c380"},
		{
			name:     "a label",
			template: `{{ index .machine.metadata.labels "zone" }}-{{ .vcdMachine.Name | replace "prod" "p" }}`,
			want:     "a-p-md-0-abcde-fghij",
		},
		{name: "a choice", template: `{{ if .kubeadmControlPlane.name }}cp{{ else }}worker{{ end }}-{{ with .cluster }}{{ .name }}{{ end }}`, want: "worker-prod"},
		{name: "surrounding spaces", template: "  {{ .machine.name }}\n", want: "prod-md-0-abcde-fghij"},
		{name: "a domain", template: "{{ .machine.name | trunc -5 }}.nodes.acme.example", want: "fghij.nodes.acme.example"},
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
		{name: "broken", template: "{{", want: "parsing"},
		{name: "environment", template: `{{ env "HOME" }}`, want: "env"},
		{name: "chance", template: `{{ randAlphaNum 5 }}`, want: "randAlphaNum"},
		{name: "time", template: `{{ now }}`, want: "now"},
		{name: "an unknown field", template: "{{ .nope }}", want: "nope"},
		{name: "capitals", template: "Upper", want: "cannot be the name"},
		{name: "an underscore", template: "a_b", want: "cannot be the name"},
		{name: "digits only", template: "12345", want: "must contain a letter"},
		{name: "nothing", template: " ", want: "cannot be the name"},
		{name: "too long", template: strings.Repeat("a", 64), want: "longer than the 63"},
		{name: "much too long", template: `{{ printf "%0999999d" 1 }}`, want: "produces more than"},
		{name: "a loop", template: `{{ range $i := 1000000000000 }}{{ end }}a`, want: "must not contain"},
		{name: "a loop in a choice", template: `{{ if true }}{{ range $i := 1000000000000 }}{{ end }}{{ end }}a`, want: "must not contain"},
		{
			name:     "a recursive template",
			template: `{{ define "a" }}{{ template "a" }}{{ end }}{{ template "a" }}`,
			want:     "must not define",
		},
		{name: "repetition", template: `{{ repeat 1000000000 "a" }}`, want: "repeat"},
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
