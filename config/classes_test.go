// SPDX-License-Identifier: Apache-2.0

package config

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// uuid1 and uuid2 are IDs of VCD objects.
const (
	uuid1 = "0dd1f8c2-6b52-4d2a-8f4c-2f1b7a4c5d6e"
	uuid2 = "1dd1f8c2-6b52-4d2a-8f4c-2f1b7a4c5d6e"
)

// specs holds an object per kind that exists in VCD, and two values for each field of its spec. Neither value is the
// default.
var specs = map[string]struct {
	base, existing string
	values         map[string][2]string
}{
	"VCDCluster": {
		base:     clusterYAML,
		existing: `{spec: {infraID: ` + uuid1 + `, controlPlaneEndpoint: {host: 192.168.100.200, port: 6443}, cloudProvider: {mode: Managed, identityRef: {name: ccm}}}}`,
		values: map[string][2]string{
			"infraID":      {uuid1, uuid2},
			"site":         {`"https://one.example.com"`, `"https://two.example.com"`},
			"org":          {"one", "two"},
			"ovdc":         {"one", "two"},
			"ovdcNetwork":  {"one", "two"},
			"identityRef":  {"{name: one}", "{name: two}"},
			"vApp":         {"{name: one}", "{layout: PerCluster}"},
			"rde":          {"{mode: Project}", "{useAsManagementCluster: true}"},
			"proxy":        {`{httpProxy: "http://one"}`, `{httpProxy: "http://two"}`},
			"loadBalancer": {"{mode: Disabled}", "{ipSpace: two}"},
			"controlPlaneLoadBalancer": {
				"{type: External}",
				"{type: EdgeGateway, edgeGateway: {ipSpace: two}}",
			},
			"controlPlaneEndpoint": {
				"{host: 192.168.100.200, port: 6443}",
				"{host: 192.168.100.200, port: 443}",
			},
			"cloudProvider":              {"{mode: Managed, identityRef: {name: one}}", "{mode: Managed, identityRef: {name: one}, image: registry.example.com/ccm}"},
			"orphanedDiskPolicy":         {"Delete", "Retain"},
			"kubeletServingCertificates": {"Approve", "Ignore"},
			"failureDomainSelector":      {"{}", "{matchLabels: {a: b}}"},
			"vAppMetadata":               {"[{key: a, value: one}]", "[{key: a, value: two}]"},
		},
	},
	"VCDMachine": {
		base:     machineYAML,
		existing: `{spec: {providerID: "vmware-cloud-director://urn:vcloud:vm:` + uuid1 + `"}}`,
		values: map[string][2]string{
			"providerID": {
				`"vmware-cloud-director://urn:vcloud:vm:` + uuid1 + `"`,
				`"vmware-cloud-director://urn:vcloud:vm:` + uuid2 + `"`,
			},
			"catalog":                {"one", "two"},
			"template":               {"one", "two"},
			"templateSelector":       {`{namePattern: "one-{kubernetesVersion}"}`, `{namePattern: "two-{kubernetesVersion}"}`},
			"sizingPolicy":           {"one", "two"},
			"placementPolicy":        {"one", "two"},
			"storageProfile":         {"one", "two"},
			"diskSize":               {"40Gi", "80Gi"},
			"additionalDisks":        {"[{name: a, size: 10Gi}]", "[{name: a, size: 20Gi}]"},
			"diskIOPS":               {"500", "1000"},
			"extraConfig":            {"[{key: a, value: one}]", "[{key: a, value: two}]"},
			"networks":               {"[{name: one}]", "[{name: two}]"},
			"vmNamingTemplate":       {"one", "two"},
			"powerOffPolicy":         {"PowerOn", "Report"},
			"powerOffMode":           {"Soft", "Hard"},
			"shutdownTimeoutSeconds": {"0", "1"},
			"cpus":                   {"2", "4"},
			"memory":                 {"4Gi", "8Gi"},
			"hardwareVersion":        {"vmx-19", "vmx-20"},
			"vmMetadata":             {"[{key: a, value: one}]", "[{key: a, value: two}]"},
			"antiAffinity":           {"Preferred", "Required"},
			"affinity":               {"{group: one}", "{group: two}"},
		},
	},
	"VCDIdentity": {base: identityYAML, existing: `{}`, values: identityValues},
	"VCDClusterIdentity": {
		base:     clusterIdentityYAML,
		existing: `{}`,
		values: with(identityValues, map[string][2]string{
			"orgs":              {"[one]", "[two]"},
			"allowedNamespaces": {"{list: [one]}", "{selector: {}}"},
		}),
	},
	"VCDFailureDomain": {
		base:     failureDomainYAML,
		existing: `{}`,
		values: map[string][2]string{
			"region":          {"one", "two"},
			"zone":            {"one", "two"},
			"ovdc":            {"one", "two"},
			"placementPolicy": {"one", "two"},
		},
	},
	"VCDDeploymentZone": {
		base:     deploymentZoneYAML,
		existing: `{}`,
		values: map[string][2]string{
			"failureDomain":       {"one", "two"},
			"site":                {`"https://one.example.com"`, `"https://two.example.com"`},
			"org":                 {"one", "two"},
			"identityRef":         {"{name: one}", "{name: two}"},
			"controlPlane":        {"false", "true"},
			"placementConstraint": {"{catalog: one}", "{catalog: two}"},
		},
	},
	"VCDRemediation": {
		base:     remediationYAML,
		existing: `{}`,
		values: map[string][2]string{
			"strategy": {"{retryLimit: 2}", "{retryLimit: 3}"},
		},
	},
}

var identityValues = map[string][2]string{
	"site":               {`"https://one.example.com"`, `"https://two.example.com"`},
	"secretRef":          {"{name: one}", "{name: two}"},
	"type":               {"ServiceAccount", "User"},
	"tls":                {"{caBundle: one}", "{insecureSkipVerify: true}"},
	"shareWithClusters":  {"true", "false"},
	"allowedExtraConfig": {"[one]", "[two]"},
}

func with(values, more map[string][2]string) map[string][2]string {
	all := maps.Clone(values)
	maps.Copy(all, more)
	return all
}

// TestTheMutabilityOfAFieldIsCorrect compares the mutability in the description of each field with the changes that the
// API server admits once the object exists in VCD. It skips templates: they are immutable as a whole, which the webhook
// enforces.
func TestTheMutabilityOfAFieldIsCorrect(t *testing.T) {
	for kind, c := range loadCRDs(t) {
		if strings.HasSuffix(kind, "Template") {
			continue
		}
		spec := fieldAt(&c.definition.Spec, "spec")
		for name, field := range spec.Properties {
			switch name {
			case "cpus", "memory": // The webhook makes them immutable, except for in-place updates.
				continue
			case capvcdCredentials: // Requests never set them: TestCAPVCDCredentialsCanOnlyBeRemoved.
				continue
			case "recordedState": // See recorded_test.go and TestMachineRecordsAreProtected.
				continue
			}
			t.Run(kind+".spec."+name, func(t *testing.T) {
				NewWithT(t).Expect(specs[kind].values).To(HaveKey(name), "a field without values")
				values := specs[kind].values[name]
				checkClass(t, c, kind, name, field.Description, values[0], values[1])
				if slices.Contains(spec.Required, name) {
					return
				}
				checkClass(t, c, kind, name, field.Description, values[0], "")
				if !byController.MatchString(field.Description) {
					checkClass(t, c, kind, name, field.Description, "", values[0])
				}
			})
		}
	}
}

var (
	immutable    = regexp.MustCompile(`(?i)\bimmutable\b`)
	byController = regexp.MustCompile(`(?i)written by the controller`)
)

// checkClass changes a field of an object from one value to another. An empty string means that the field is not set.
func checkClass(t *testing.T, c *crd, kind, name, description, from, to string) {
	t.Helper()
	g := NewWithT(t)
	object := func(value string) map[string]any {
		without := `{spec: {` + name + `: }}`
		if name == "templateSelector" {
			without = `{spec: {template: , templateSelector: }}` // Only one of them can be set.
		}
		return parse(t, specs[kind].base, specs[kind].existing, without, `{spec: {`+name+`: `+value+`}}`)
	}
	if errs := c.admit(t, object(from), nil); len(errs) > 0 {
		g.Expect(from).To(BeEmpty(), "%v", errs)
		return // The field is required.
	}

	errs := c.admit(t, object(to), object(from))

	if immutable.MatchString(description) {
		g.Expect(fieldsOf(errs)).To(ContainElement("spec."+name), "%q to %q", from, to)
		return
	}
	g.Expect(errs).To(BeEmpty(), "%q to %q", from, to)
}
