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

// word matches ids of clusters: one word.
var word = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9:._-]{0,99}$`)

// placeholders stand in manifests for what has to be written.
var placeholders = map[string]bool{"API_URL": true, "API_KEY": true, "SECRET_KEY": true}

// Parse reads a file, completes it and checks it; CA is the content of the file with certificates. The error has
// everything that is wrong, one problem on each line.
func Parse(file []byte, env ccmconfig.Environment) (c Config, ca string, warnings []string, err error) {
	content, err := ccmconfig.ParseINI(file)
	if err != nil {
		return c, "", nil, err
	}
	report := ccmconfig.DecodeNode(content, &c, env)
	check := checker{&c, report}
	check.complete()
	ca = check.validateSite(env)
	check.validateNodes()
	check.validateLoadBalancer()
	return c, ca, report.Warnings, report.Err()
}

// A checker completes and checks what was read.
type checker struct {
	*Config
	*ccmconfig.Report
}

func (c checker) complete() {
	var networks []string
	for _, name := range c.LoadBalancer.Networks {
		if !slices.Contains(networks, name) {
			networks = append(networks, name)
		}
	}
	c.LoadBalancer.Networks = networks
}

func (c checker) validateSite(env ccmconfig.Environment) (ca string) {
	g := c.Global
	c.validateURL()
	for path, value := range map[string]string{"global.api-key": g.APIKey, "global.secret-key": string(g.SecretKey)} {
		if placeholders[value] {
			c.Problem(path, "is still %s, as in the manifest: write the key of the user", value)
		}
	}
	if g.SSLNoVerify && g.CAFile != "" {
		c.Problem("global.ssl-no-verify", "trusts any certificate, so ca-file has no effect: remove one")
	}
	if g.SSLNoVerify {
		c.Warn("global.ssl-no-verify: the certificate is not checked; set ca-file instead")
	}
	return ccmconfig.ReadCA(c.Report, env, "global.ca", "", g.CAFile)
}

func (c checker) validateURL() {
	const key = "global.api-url"
	text := c.Global.APIURL
	u, err := url.Parse(text)
	switch {
	case text == "": // reported already
	case placeholders[text]:
		c.Problem(key, "is still %s, as in the manifest: write the address of CloudStack's API", text)
	case err != nil || u.Host == "" || !slices.Contains([]string{"http", "https"}, u.Scheme):
		c.Problem(key, "must be an address of the form https://host/client/api")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		c.Problem(key, "must have no user and no query: keys have keys of their own")
	case u.Scheme == "http":
		c.Warn("%s: without https, others on the network can read and change what is sent", key)
	}
}

func (c checker) validateNodes() {
	if len(validation.IsValidLabelValue(c.Global.Region)) > 0 {
		c.Problem("global.region", "is %q, which cannot be the value of a label", c.Global.Region)
	}
	if id := c.Global.ClusterID; id != "" && !word.MatchString(id) {
		c.Problem("global.cluster-id", "is %q, but must be one word of up to 100 letters, digits and :._-", id)
	}
	c.between("global.max-age", c.Global.MaxAge.Duration, time.Second, 10*time.Minute)
	c.between("global.request-timeout", c.Global.RequestTimeout.Duration, time.Second, 10*time.Minute)
	c.between("global.job-timeout", c.Global.JobTimeout.Duration, 10*time.Second, time.Hour)
}

func (c checker) between(path string, d, least, most time.Duration) {
	if d < least || d > most {
		c.Problem(path, "is %s, but must be from %s to %s", d, least, most)
	}
}

func (c checker) validateLoadBalancer() {
	b := c.LoadBalancer
	if b.ClassOnly && b.Class == "" {
		c.Problem("loadbalancer.class-only", "leaves no Service to this controller: set class")
	}
	c.between("loadbalancer.drift-interval", b.DriftInterval.Duration, 10*time.Second, 24*time.Hour)
}
