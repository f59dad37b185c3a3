// SPDX-License-Identifier: Apache-2.0

package cloudstackconfig

import (
	"net/url"
	"regexp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/ccmconfig"
)

// word matches IDs of clusters, which are one word.
var word = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9:._-]{0,99}$`)

// placeholders are the texts in manifests that users must replace.
var placeholders = map[string]bool{"API_URL": true, "API_KEY": true, "SECRET_KEY": true}

// Parse parses a file, completes the configuration and validates it. ca is the content of the file with certificate
// authorities. The error contains all problems, one per line.
func Parse(file []byte, env ccmconfig.Environment) (c Config, ca string, warnings []string, err error) {
	content, err := ccmconfig.ParseINI(file)
	if err != nil {
		return c, "", nil, err
	}
	report := ccmconfig.DecodeNode(content, &c, env)
	complete(&c)
	ca = validateSite(&c, report, env)
	validateNodes(&c, report)
	validateLoadBalancer(&c, report)
	return c, ca, report.Warnings, report.Err()
}

func complete(c *Config) {
	var networks []string
	for _, name := range c.LoadBalancer.Networks {
		if !slices.Contains(networks, name) {
			networks = append(networks, name)
		}
	}
	c.LoadBalancer.Networks = networks
}

func validateSite(c *Config, report *ccmconfig.Report, env ccmconfig.Environment) (ca string) {
	g := c.Global
	validateURL(c, report)
	for path, value := range map[string]string{"global.api-key": g.APIKey, "global.secret-key": string(g.SecretKey)} {
		if placeholders[value] {
			report.Problem(path, "is still %s, the placeholder of the manifest: set the key of the user", value)
		}
	}
	if g.SSLNoVerify && g.CAFile != "" {
		report.Problem("global.ssl-no-verify", "trusts any certificate, so ca-file has no effect: remove one")
	}
	if g.SSLNoVerify {
		report.Warn("global.ssl-no-verify: the certificate is not checked; set ca-file instead")
	}
	return ccmconfig.ReadCA(report, env, "global.ca", "", g.CAFile)
}

func validateURL(c *Config, report *ccmconfig.Report) {
	const key = "global.api-url"
	text := c.Global.APIURL
	u, err := url.Parse(text)
	switch {
	case text == "": // reported already
	case placeholders[text]:
		report.Problem(key, "is still %s, the placeholder of the manifest: set the address of the CloudStack API", text)
	case err != nil || u.Host == "" || !slices.Contains([]string{"http", "https"}, u.Scheme):
		report.Problem(key, "must be an address of the form https://host/client/api")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		report.Problem(key, "must not contain a user or query: set api-key and secret-key")
	case u.Scheme == "http":
		report.Warn("%s: without https, an attacker on the network can read and change requests", key)
	}
}

func validateNodes(c *Config, report *ccmconfig.Report) {
	if len(validation.IsValidLabelValue(c.Global.Region)) > 0 {
		report.Problem("global.region", "is %q, which is not a valid label value", c.Global.Region)
	}
	if id := c.Global.ClusterID; id != "" && !word.MatchString(id) {
		report.Problem("global.cluster-id", "is %q, but must be one word of up to 100 letters, digits and :._-", id)
	}
	report.Between("global.max-age", c.Global.MaxAge.Duration, time.Second, 10*time.Minute)
	report.Between("global.request-timeout", c.Global.RequestTimeout.Duration, time.Second, 10*time.Minute)
	report.Between("global.job-timeout", c.Global.JobTimeout.Duration, 10*time.Second, time.Hour)
}

func validateLoadBalancer(c *Config, report *ccmconfig.Report) {
	b := c.LoadBalancer
	if b.ClassOnly && b.Class == "" {
		report.Problem("loadbalancer.class-only", "excludes all Services from this controller: set class")
	}
	report.Between("loadbalancer.drift-interval", b.DriftInterval.Duration, 10*time.Second, 24*time.Hour)
}
