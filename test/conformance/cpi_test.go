// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/conformance/wire"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

const (
	cpiPackage = wire.CPIModule + "/pkg/vcdsdk"
	cpiList    = "cpi-must-pass.txt"
)

// goFormat is the output format of the testing package. Some of these tests are unit tests, so no requests are needed.
var goFormat = format{
	started: regexp.MustCompile(`(?m)^=== RUN\s+(Test\w+)$`),
	ended:   regexp.MustCompile(`(?m)^--- (PASS|FAIL|SKIP): (Test\w+) `),
}

// TestCloudProvider runs the system tests of VMware's cloud provider for Kubernetes.
func TestCloudProvider(t *testing.T) {
	skipShort(t)
	s := start(t, goFormat, cpiModel(), vcdsim.Version106)
	s.binary = compileTests(t, ".", cpiPackage)
	if *all {
		s.limit = time.Minute // some unlisted tests wait much longer for scripts in guests
	}
	data := filepath.Join(s.dir, "testdata")
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	for file, content := range cpiConfig(s.sim.URL()) {
		writeYAML(t, data, file, content)
	}
	s.env = []string{"GITROOT=" + s.dir}
	pattern := "."
	switch {
	case *only != "":
		pattern = *only
	case !*all:
		pattern = "^(" + strings.Join(readList(t, cpiList), "|") + ")$"
	}
	// A panic ends the binary, so each test runs separately.
	got := results{}
	for _, name := range strings.Fields(run(t, ".", s.env, s.binary, "-test.list", pattern)) {
		for k, v := range s.run("-test.v", "-test.run", "^"+name+"$") {
			got[k] = v
		}
	}
	checkList(t, cpiList, got)
	checkWire(t, s.wire.Exchanges())
}

// cpiModel returns the Kubernetes tenant with the names that these tests expect.
func cpiModel() vcdsim.Model {
	m := vcdsim.K8sTenant()
	m.Orgs[0].Users[0].APITokens = []string{"system-api-token"}
	policies := []vcdsim.ComputePolicy{
		{Name: "2core2gb", CPUs: 2, MemoryMiB: 2048},
		{Name: "4core4gb", CPUs: 4, MemoryMiB: 4096},
		{Name: "TKG medium", CPUs: 2, MemoryMiB: 8192},
		{Name: "cse----native", Placement: true},
	}
	m.Policies = append(m.Policies, policies...)
	acme := &m.Orgs[1]
	for _, p := range policies {
		acme.VDCs[0].Policies = append(acme.VDCs[0].Policies, p.Name)
	}
	acme.VDCs[0].StorageProfiles = append(acme.VDCs[0].StorageProfiles, vcdsim.StorageProfile{Name: "Development2"},
		vcdsim.StorageProfile{Name: "*"})
	images := vcdsim.Catalog{Name: "cse"}
	for _, name := range []string{
		"Ubuntu 20.04 and Kubernetes v1.21.11+vmware.1", "Ubuntu 20.04 and Kubernetes v1.23.10+vmware.1",
		"ubuntu-16.04_k8-1.20_weave-2.6.5_rev2",
	} {
		images.Templates = append(images.Templates,
			vcdsim.Template{Name: name, VMs: []vcdsim.TemplateVM{templateVM("node")}})
	}
	acme.Catalogs = append(acme.Catalogs, images)
	acme.Certificates = []vcdsim.Certificate{{Alias: "acme-tls", PEM: string(certificate())}}
	// A second gateway uses IP Spaces.
	m.ExternalNetworks = append(m.ExternalNetworks, vcdsim.ExternalNetwork{Name: "internet-spaces", UsesSpaces: true})
	m.IPSpaces = []vcdsim.IPSpace{vcdsim.PublicSpace("public", "internet-spaces")}
	acme.VDCs[0].EdgeGateways = append(acme.VDCs[0].EdgeGateways, vcdsim.EdgeGateway{
		Name:         "space-gateway",
		Uplinks:      []vcdsim.Uplink{{Network: "internet-spaces"}},
		LoadBalancer: &vcdsim.LoadBalancer{Enabled: true, Groups: []string{"engines"}},
	})
	acme.VDCs[0].Networks = append(acme.VDCs[0].Networks, vcdsim.Network{
		Name:    "space-nodes",
		Type:    vcdsim.Routed,
		Gateway: netip.MustParsePrefix("192.168.110.1/24"),
		Edge:    "space-gateway",
	})
	return m
}

// certificate returns a self-signed certificate that is not valid for any host.
func certificate() []byte {
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		panic(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// cpiConfig returns the configuration files of the tests.
func cpiConfig(url string) map[string]object {
	return map[string]object{
		"vcd_info.yaml": {
			"host":               url,
			"tenantOrg":          "acme",
			"tenantVdc":          "acme-vdc",
			"ovdcNetwork":        "nodes",
			"userOrg":            "acme",
			"user":               "admin",
			"password":           "password",
			"refreshToken":       "capvcd-api-token",
			"vipSubnet":          "",
			"certificateAlias":   "acme-tls",
			"clusterID":          "urn:vcloud:entity:vmware:capvcdCluster:11111111-2222-4333-8444-555555555555",
			"freeLoadBalancerIP": "203.0.113.60",
		},
		"auth_test.yaml": {
			"username":               "admin",
			"password":               "password",
			"userOrg":                "acme",
			"refreshToken":           "capvcd-api-token",
			"systemUser":             "administrator",
			"systemUserPassword":     "password",
			"systemUserRefreshToken": "system-api-token",
		},
		"ip_space_test.yaml": {
			"username":               "capvcd",
			"userOrg":                "acme",
			"refreshToken":           "capvcd-api-token",
			"orgvdc":                 "acme-vdc",
			"orgvdcNetworkIpSpace":   "space-nodes",
			"orgvdcNetowrkNoIpSpace": "nodes",
		},
	}
}
