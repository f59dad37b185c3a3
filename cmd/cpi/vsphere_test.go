// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

const vsphereConfig = `
[Global]
datacenters = "DC0"
[VirtualCenter "vc.example.com"]
user = "ccm"
password = "canary"
[Labels]
zone = k8s-zone
`

func TestVSphereIsSelectedByName(t *testing.T) {
	g := NewWithT(t)

	out, err := run(t, vsphereConfig, nil, "--cloud-provider=vsphere", "--validate-config")

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(out).To(ContainSubstring("warning: vcenter.vc.example.com: user and password are visible to all readers"))
	g.Expect(out).NotTo(ContainSubstring("canary"))
}

func TestInvalidVSphereConfigurations(t *testing.T) {
	g := NewWithT(t)

	_, err := run(t, "[Global]\nusr = x\n[VirtualCenter \"https://vc\"]\nport = 0.5\n", nil, "--cloud-provider=vsphere")

	g.Expect(err).To(MatchError(And(ContainSubstring("global.usr (line 2): is not a key"),
		ContainSubstring("virtualcenter.https://vc.port (line 4): is"), ContainSubstring("must be a host name"))))

	_, err = run(t, "vcenter: {vc.example.com: {}}", nil, "--cloud-provider=vsphere", "--validate-config")
	g.Expect(err).To(MatchError(ContainSubstring("vCenter vc.example.com: credentials: no credentials")))

	_, err = run(t, vsphereConfig, nil, "--cloud-provider=vsphere", "--node-labels=a b=c")
	g.Expect(err).To(MatchError(ContainSubstring("--node-labels: a b=c is not a label")))
}

func TestVSphereCanBeConfiguredByTheEnvironmentAlone(t *testing.T) {
	g := NewWithT(t)
	file, err := readConfig(filepath.Join(t.TempDir(), "none"), true)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(file).To(BeEmpty())
	_, err = readConfig(filepath.Join(t.TempDir(), "none"), false)
	g.Expect(err).To(MatchError(os.ErrNotExist))
}
