// SPDX-License-Identifier: Apache-2.0

package cloudstackconfig

import (
	"errors"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/ccmconfig"
)

// original is the cloud-config from the documentation of the original program.
const original = `[Global]
api-url = https://cloud.example.com/client/api
api-key = key
secret-key = s3cret
project-id = 7f3a
zone = zone 1
ssl-no-verify = true
`

func parse(file string) (Config, []string, error) {
	c, _, warnings, err := Parse([]byte(file), ccmconfig.Environment{
		Getenv:   func(name string) string { return map[string]string{"CLUSTER_ID": "c1"}[name] },
		ReadFile: func(string) ([]byte, error) { return nil, errors.New("no such file") },
	})
	return c, warnings, err
}

func TestTheFileOfTheOriginalIsRead(t *testing.T) {
	g := NewWithT(t)

	c, warnings, err := parse(original)

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(warnings).To(ConsistOf(ContainSubstring("the certificate is not checked")))
	g.Expect(c.Global).To(Equal(Global{
		APIURL:         "https://cloud.example.com/client/api",
		APIKey:         "key",
		SecretKey:      "s3cret",
		ProjectID:      "7f3a",
		Zone:           "zone 1",
		SSLNoVerify:    true,
		ClusterID:      "c1",
		MaxAge:         c.Global.MaxAge,
		RequestTimeout: c.Global.RequestTimeout,
		JobTimeout:     c.Global.JobTimeout,
	}))
	g.Expect(c.Global.MaxAge.Duration).To(Equal(30 * time.Second))
}

func TestAdditionalKeys(t *testing.T) {
	g := NewWithT(t)
	file := `; the cloud
[Global]
API-URL = "https://cloud.example.com/client/api"
api-key = key ; of the user
secret-key = s3cret
region = eu
[LoadBalancer]
network = nodes
networks = dmz, public, dmz
algorithm = leastconn
include-control-plane = yes
`
	c, warnings, err := parse(file)

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(warnings).To(BeEmpty())
	g.Expect(c.Global.Region).To(Equal("eu"))
	g.Expect(c.LoadBalancer).To(And(HaveField("Network", "nodes"), HaveField("Networks", []string{"dmz", "public"}),
		HaveField("Algorithm", "leastconn"), HaveField("IncludeControlPlane", true)))
}

func TestInvalidConfigurations(t *testing.T) {
	tests := []struct {
		name, file string
		want       []string // each line of the error
	}{
		{
			name: "an empty file",
			want: []string{
				"global.api-url: is missing: set an address such as https://cloud.example.com/client/api",
				"global.api-key: is missing: set the API key of the user",
				"global.secret-key: is missing: set the secret key of the user",
			},
		},
		{
			name: "misspelt keys",
			file: original + "secret_key = x\n[LoadBalancer]\nnetwerk = a\n[Nodes]\n",
			want: []string{
				"global.secret_key (line 8): is not a key of the configuration: remove it, or correct its spelling",
				"loadbalancer.netwerk (line 10): is not a key of the configuration: remove it, or correct its spelling",
				"nodes (line 11): is not a key of the configuration: remove it, or correct its spelling",
			},
		},
		{
			name: "an address that contains a key",
			file: strings.Replace(original, "/client/api", "/client/api?apikey=a", 1),
			want: []string{
				"global.api-url (line 2): must not contain a user or query: set api-key and secret-key",
			},
		},
		{
			name: "an invalid URL",
			file: strings.Replace(original, "https://", "", 1),
			want: []string{
				"global.api-url (line 2): must be an address of the form https://host/client/api",
			},
		},
		{
			name: "the manifest's placeholders",
			file: strings.NewReplacer("= key", "= API_KEY", "s3cret", "SECRET_KEY").Replace(original),
			want: []string{
				"global.api-key (line 3): is still API_KEY, the placeholder of the manifest: set the key of the user",
				"global.secret-key (line 4): is still SECRET_KEY, the placeholder of the manifest: set the key of the user",
			},
		},
		{
			name: "invalid values",
			file: original + "region = a b\nca-file = /none\nmax-age = 1ms\n[LoadBalancer]\nalgorithm = best\nclass-only = true\n",
			want: []string{
				"global.ssl-no-verify (line 7): trusts any certificate, so ca-file has no effect: remove one",
				`global.region (line 8): is "a b", which is not a valid label value`,
				"global.ca-file (line 9): cannot be read: no such file",
				"global.max-age (line 10): is 1ms, but must be from 1s to 10m0s",
				`loadbalancer.algorithm (line 12): is "best", but must be roundrobin or leastconn or source`,
				"loadbalancer.class-only (line 13): excludes all Services from this controller: set class",
			},
		},
		{
			name: "not INI",
			file: "api-url = x\n",
			want: []string{"line 1: is before the first section: begin with a line such as [Global]"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)

			_, _, err := parse(tt.file)

			g.Expect(err).To(HaveOccurred())
			g.Expect(strings.Split(err.Error(), "\n")).To(Equal(tt.want))
			g.Expect(err.Error()).NotTo(ContainSubstring("s3cret"))
		})
	}
}

func TestWithoutHTTPS(t *testing.T) {
	g := NewWithT(t)

	_, warnings, err := parse(strings.Replace(original, "https", "http", 1))

	g.Expect(err).NotTo(HaveOccurred(), "the original's simulator is served so")
	g.Expect(warnings).To(ContainElement(ContainSubstring("without https")))
}
