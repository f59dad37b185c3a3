// SPDX-License-Identifier: Apache-2.0

package vsphereconfig

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/ccmconfig"
)

// DefaultSecretsDirectory is the directory where manifests of the vSphere CPI mount a Secret.
const DefaultSecretsDirectory = "/etc/cloud/secrets" //nolint:gosec // A directory.

const defaultPort, defaultRoundTrips = 443, 3

// Parse parses a YAML or INI file, completes the configuration from the environment and validates it. Variables take
// precedence over the file, as in the vSphere CPI. Every returned vCenter is complete. The error contains all problems,
// one per line.
func Parse(file []byte, env ccmconfig.Environment) (c Config, warnings []string, err error) {
	content, err := read(file)
	if err != nil {
		return c, nil, err
	}
	env.VariablesWin = true
	report := ccmconfig.DecodeNode(content, &c, env)
	if ccmconfig.IsINI(file) {
		report.Warn("the file is in the INI format, which is supported, but YAML is recommended")
	}
	fromEnvironment(&c, report, env)
	complete(&c)
	validateVCenters(&c, report)
	validateLabels(&c, report)
	report.Between("nodes.maxAge", c.Nodes.MaxAge.Duration, time.Second, 10*time.Minute)
	return c, report.Warnings, report.Err()
}

// read parses a file. It returns nil if the file is empty.
func read(file []byte) (*yaml.Node, error) {
	if ccmconfig.IsINI(file) {
		content, err := ccmconfig.ParseINI(file)
		if err != nil {
			return nil, fmt.Errorf("the configuration is not INI:\n%w", err)
		}
		return content, nil
	}
	var document yaml.Node
	if err := yaml.Unmarshal(file, &document); err != nil {
		return nil, fmt.Errorf("the configuration is not YAML: %w", err)
	}
	if len(document.Content) == 0 {
		return nil, nil
	}
	return document.Content[0], nil
}

// variables maps the part after VCENTER_<id>_ in names of variables to keys.
var variables = map[string]string{
	"SERVER":           "server",
	"USERNAME":         "user",
	"PASSWORD":         "password",
	"PORT":             "port",
	"INSECURE":         "insecureFlag",
	"DATACENTERS":      "datacenters",
	"ROUNDTRIP":        "soapRoundtripCount",
	"CAFILE":           "caFile",
	"THUMBPRINT":       "thumbprint",
	"SECRET_NAME":      "secretName",
	"SECRET_NAMESPACE": "secretNamespace",
	"IP_FAMILY":        "ipFamily",
}

// fromEnvironment adds the vCenters that variables define: VSPHERE_VCENTER_<id> is the host, and VCENTER_<id>_USERNAME
// and so on are the other values.
func fromEnvironment(c *Config, report *ccmconfig.Report, env ccmconfig.Environment) {
	if env.Environ == nil {
		return
	}
	found := map[string]string{}
	for _, variable := range env.Environ() {
		name, value, _ := strings.Cut(variable, "=")
		id, ok := strings.CutPrefix(name, "VSPHERE_VCENTER_")
		if ok && id != "PORT" && id != "" && value != "" {
			found[id] = value
		}
	}
	for _, id := range slices.Sorted(maps.Keys(found)) {
		if c.VCenters == nil {
			c.VCenters = map[string]*VCenter{}
		}
		if c.VCenters[id] == nil {
			c.VCenters[id] = &VCenter{}
		}
		overwrite(report, c.VCenters[id], id, found[id], env)
	}
}

// overwrite sets the values of one vCenter that variables define, according to the schema of its section.
func overwrite(report *ccmconfig.Report, v *VCenter, id, host string, env ccmconfig.Environment) {
	section := &yaml.Node{Kind: yaml.MappingNode}
	add := func(key, value string) {
		section.Content = append(section.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: key},
			&yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: value})
	}
	for _, suffix := range slices.Sorted(maps.Keys(variables)) {
		if value := env.Getenv("VCENTER_" + id + "_" + suffix); value != "" {
			add(variables[suffix], value)
		}
	}
	v.Server = host
	decoded := ccmconfig.DecodeNode(section, v, ccmconfig.Environment{})
	if err := decoded.Err(); err != nil {
		for line := range strings.SplitSeq(err.Error(), "\n") {
			key, text, _ := strings.Cut(line, ": ")
			for suffix, name := range variables {
				if name == key {
					key = "VCENTER_" + id + "_" + suffix
				}
			}
			report.Problem(key, "%s", text)
		}
	}
}

// complete creates a vCenter from the global section if there is no other, and sets the missing values of each vCenter.
func complete(c *Config) {
	g := c.Global
	if len(c.VCenters) == 0 && g.Server != "" {
		c.VCenters = map[string]*VCenter{g.Server: {}}
	}
	for name, v := range c.VCenters {
		v.Server = cmp.Or(v.Server, name)
		if v.User == "" && v.Password == "" {
			v.User = g.User
			v.Password = g.Password
		}
		v.Port = cmp.Or(v.Port, g.Port, defaultPort)
		v.Insecure = v.Insecure || g.Insecure
		v.RoundTrips = cmp.Or(v.RoundTrips, g.RoundTrips, defaultRoundTrips)
		v.CAFile = cmp.Or(v.CAFile, g.CAFile)
		v.Thumbprint = cmp.Or(v.Thumbprint, g.Thumbprint)
		if v.SecretName == "" {
			v.SecretName = g.SecretName
			v.SecretNamespace = cmp.Or(v.SecretNamespace, g.SecretNamespace)
		}
		v.Datacenters = orElse(v.Datacenters, g.Datacenters)
		v.Families = orElse(v.Families, orElse(g.Families, []string{"ipv4"}))
	}
}

func orElse(own, other []string) []string {
	if len(own) > 0 {
		return own
	}
	return other
}

func validateVCenters(c *Config, report *ccmconfig.Report) {
	if len(c.VCenters) == 0 {
		report.Problem("vcenter", "is missing: set a vCenter, such as vcenter: {vc.example.com: {}}")
	}
	hosts := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(c.VCenters)) {
		v := c.VCenters[name]
		at := "vcenter." + name
		if err := checkHost(v.Server); err != nil {
			report.Problem(at+".server", "is %q, but must be a host name or address: %v", v.Server, err)
		}
		where := fmt.Sprintf("%s:%d %v", strings.ToLower(v.Server), v.Port, v.Datacenters)
		if other := hosts[where]; other != "" {
			report.Problem(at, "is the same vCenter as %s: remove one", other)
		}
		hosts[where] = name
		validateVCenter(report, at, v)
	}
}

func validateVCenter(report *ccmconfig.Report, at string, v *VCenter) {
	if v.Port < 1 || v.Port > 65535 {
		report.Problem(at+".port", "is %d, but must be from 1 to 65535", v.Port)
	}
	if v.RoundTrips < 1 || v.RoundTrips > 20 {
		report.Problem(at+".soapRoundtripCount", "is %d, but must be from 1 to 20", v.RoundTrips)
	}
	if len(slices.Compact(slices.Sorted(slices.Values(v.Families)))) < len(v.Families) {
		report.Problem(at+".ipFamily", "contains a duplicate family: keep one")
	}
	if (v.User == "") != (v.Password == "") {
		report.Problem(at+".user", "and password must be set together: set both, or use a Secret")
	}
	if v.Password != "" && !strings.HasPrefix(v.User, "-----BEGIN") {
		report.Warn("%s: user and password are visible to all readers of this file: move them to a Secret", at)
	}
	if v.Insecure {
		report.Warn("%s.insecureFlag: the certificate is not checked; set caFile or thumbprint instead", at)
	}
}

// checkHost rejects values that are not only a host.
func checkHost(host string) error {
	if strings.Contains(host, "://") || strings.ContainsAny(host, "/@ ") {
		return errors.New("without scheme, user and path")
	}
	bare := strings.Trim(host, "[]")
	if net.ParseIP(bare) != nil {
		return nil
	}
	if strings.Contains(bare, ":") {
		return errors.New("set the port in its separate key")
	}
	if _, err := url.Parse("https://" + host); err != nil || bare == "" {
		return errors.New("it is empty or contains invalid characters")
	}
	return nil
}

func validateLabels(c *Config, report *ccmconfig.Report) {
	if c.Labels.Zone != "" && c.Labels.Zone == c.Labels.Region {
		report.Problem("labels.region", "is also the category of zones: use different categories")
	}
	keys := map[string]string{"labels.host": c.Labels.Host, "labels.cluster": c.Labels.Cluster}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		value := keys[key]
		domain, _, _ := strings.Cut(value, "/")
		switch {
		case value == "":
		case len(validation.IsQualifiedName(value)) > 0:
			report.Problem(key, "is %q, which is not a valid label key", value)
		case isReserved(domain):
			report.Problem(key, "is %q, but labels of %s are reserved for Kubernetes: use your own domain", value,
				domain)
		}
	}
	if c.Labels.Host != "" && c.Labels.Host == c.Labels.Cluster {
		report.Problem("labels.cluster", "is also the key for hosts: use different keys")
	}
}

func isReserved(domain string) bool {
	for _, own := range []string{"kubernetes.io", "k8s.io"} {
		if domain == own || strings.HasSuffix(domain, "."+own) {
			return true
		}
	}
	return false
}
