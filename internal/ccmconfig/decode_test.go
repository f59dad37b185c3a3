// SPDX-License-Identifier: Apache-2.0

package ccmconfig

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// A cloud is a schema with a key of each kind.
type cloud struct {
	URL       string            `json:"url,omitzero" required:"write a URL"`
	Key       Secret            `json:"key,omitzero" env:"CLOUD_KEY"`
	Enabled   *bool             `json:"enabled,omitzero"`
	Verify    bool              `json:"verify,omitzero" alias:"ssl-verify"`
	Retries   int               `json:"retries,omitzero" default:"3"`
	Rate      float64           `json:"rate,omitzero"`
	Timeout   metav1.Duration   `json:"timeout,omitzero" default:"30s"`
	Old       Ignored           `json:"old,omitzero" ignored:"'url' has it"`
	Families  []corev1.IPFamily `json:"families,omitzero" enum:"IPv4,IPv6"`
	First     *first            `json:"first,omitzero"`
	Zones     []zone            `json:"zones,omitzero"`
	Addresses struct {
		network
		Only netip.Addr `json:"only,omitzero"`
	} `json:"addresses,omitzero"`
}

type first struct {
	Port int `json:"port,omitzero"`
}

type zone struct {
	Name string `json:"name" required:"set the name of the zone"`
	network
}

type network struct {
	CIDRs []netip.Prefix `json:"cidrs,omitzero"`
}

func decode(file string) (cloud, *Report) {
	var c cloud
	r, err := Decode([]byte(file), &c, Environment{Getenv: func(name string) string { return "value of " + name }})
	if err != nil {
		panic(err)
	}
	return c, r
}

func TestWrittenConfigurationIsReadBack(t *testing.T) {
	g := NewWithT(t)
	want := cloud{
		URL:      "https://cloud",
		Key:      "value of CLOUD_KEY",
		Enabled:  new(false),
		Verify:   true,
		Retries:  1,
		Rate:     2.5,
		Families: []corev1.IPFamily{corev1.IPv6Protocol},
		First:    &first{Port: 80},
		Zones:    []zone{{Name: "a"}, {Name: "b"}},
	}
	g.Expect(want.Timeout.UnmarshalJSON([]byte(`"1m0s"`))).To(Succeed())
	want.Addresses.Only = netip.MustParseAddr("10.0.0.1")
	want.Addresses.CIDRs = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	written := want
	written.Key = ""
	file, err := yaml.Marshal(written)
	g.Expect(err).NotTo(HaveOccurred())

	got, report := decode(string(file))

	g.Expect(report.Err()).NotTo(HaveOccurred())
	g.Expect(report.Warnings).To(BeEmpty())
	g.Expect(got).To(Equal(want))
	g.Expect(fmt.Sprintf("%v %+v %#v", got, got, got)).NotTo(ContainSubstring("CLOUD_KEY"), "secrets are not printed")
}

func TestDefaults(t *testing.T) {
	g := NewWithT(t)

	got, report := decode("url: &u x\nkey: own\nold: [1]\nssl-verify: Yes\nfirst: {}\nrate:\nzones: [name: *u]")

	g.Expect(report.Err()).NotTo(HaveOccurred())
	g.Expect(report.Warnings).To(ConsistOf("old (line 3) has no effect: url has it; remove it"))
	g.Expect(string(got.Key)).To(Equal("own"), "the file overrides the environment")
	g.Expect(got.Retries).To(Equal(3))
	g.Expect(got.Timeout.Seconds()).To(Equal(30.0))
	g.Expect(got.Verify).To(BeTrue())
	g.Expect(got.First).To(BeNil(), "an empty section is the same as no section")
	g.Expect(got.Zones).To(Equal([]zone{{Name: "x"}}))
}

func TestProblems(t *testing.T) {
	tests := []struct {
		name, file string
		want       []string // each line of the error
	}{
		{
			name: "the file is a list",
			file: "[]",
			want: []string{"url: is missing: write a URL", "the configuration (line 1): must contain keys and values"},
		},
		{
			name: "missing keys in a section of a list",
			file: "url: x\nzones:\n- name: a\n- cidrs: []",
			want: []string{"zones[1].name: is missing: set the name of the zone"},
		},
		{
			name: "a list whose items are not sections",
			file: "url: x\nzones: [a]",
			want: []string{
				"zones[0].name: is missing: set the name of the zone", "zones[0] (line 2): must contain keys and values",
			},
		},
		{
			name: "in the order of the file",
			file: "url: x\nrate: a\nenabled: 2\nretries: 1.5",
			want: []string{
				`rate (line 2): is "a", but must be a number`, `enabled (line 3): is "2", but must be true or false`,
				`retries (line 4): is "1.5", but must be a whole number`,
			},
		},
		{
			name: "all elements of a list",
			file: "url: x\nfamilies: [IPv4, IPv5, '', {}]",
			want: []string{
				`families (line 2): element 2 is "IPv5", but must be IPv4 or IPv6; element 3 is "", but must be IPv4 or IPv6; ` +
					`element 4 must be a single value`,
			},
		},
		{
			name: "an address with a zone",
			file: "url: x\naddresses: {only: fe80::1%eth0}",
			want: []string{
				`addresses.only (line 2): is "fe80::1%eth0", but must be an address such as 192.168.8.2`,
			},
		},
		{
			name: "unknown keys",
			file: "url: x\nCIDRs: []\ncolour: red",
			want: []string{
				"CIDRs (line 2): is not a key of the configuration: addresses.cidrs or zones[…].cidrs may be intended",
				"colour (line 3): is not a key of the configuration: remove it, or correct its spelling",
			},
		},
		{name: "a duplicate key", file: "url: x\nurl: y", want: []string{"url (line 2): is duplicated: keep one"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)

			_, report := decode(tt.file)

			g.Expect(report.Err()).To(HaveOccurred())
			g.Expect(strings.Split(report.Err().Error(), "\n")).To(Equal(tt.want))
		})
	}
}

func TestInvalidYAML(t *testing.T) {
	_, err := Decode([]byte("a: [\n"), &cloud{}, Environment{})

	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("not YAML: yaml: line 1")))
}

func TestReadCA(t *testing.T) {
	g := NewWithT(t)
	env := Environment{ReadFile: func(name string) ([]byte, error) {
		if name == "none" {
			return nil, errors.New("no such file")
		}
		return []byte("not PEM"), nil
	}}
	for want, read := range map[string][2]string{
		"":                                       {"", ""},
		"caFile: cannot be set together with ca": {"pem", "file"},
		"ca: contains no certificate":            {"pem", ""},
		"caFile: cannot be read":                 {"", "none"},
		"caFile: contains no":                    {"", "file"},
	} {
		r := &Report{}
		ReadCA(r, env, "ca", read[0], read[1])
		if want == "" {
			g.Expect(r.Err()).NotTo(HaveOccurred())
			continue
		}
		g.Expect(r.Err()).To(MatchError(HavePrefix(want)))
	}
}

func TestKeys(t *testing.T) {
	g := NewWithT(t)
	var all []string
	for _, k := range Keys(&cloud{}) {
		all = append(all, k.Path+" "+k.Kind+" "+k.Owner.Name()+"."+k.Field.Name)
	}

	g.Expect(all).To(ContainElements("url text cloud.URL", "enabled boolean cloud.Enabled",
		"families list of texts cloud.Families",
		"first.port integer first.Port", "zones[].name text zone.Name", "zones[].cidrs list of CIDRs network.CIDRs",
		"old any cloud.Old"))
}
