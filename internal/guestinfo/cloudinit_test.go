// SPDX-License-Identifier: Apache-2.0

package guestinfo_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/guestinfo"
)

// python is the interpreter that distributions install cloud-init for. Another one on PATH does not find it.
const python = "/usr/bin/python3"

// needCloudInit skips the test if the distribution's cloud-init is not installed.
func needCloudInit(t *testing.T) {
	t.Helper()
	if err := exec.Command(python, "-c", "from cloudinit.sources import DataSourceVMware").Run(); err != nil {
		t.Skipf("cloud-init is not installed for %s: install the package cloud-init to run this test (%v)", python, err)
	}
}

// machine is a simulated guest: guestinfo, and the cloud-init that is installed on the test machine.
type machine struct {
	state string // file
	tools string // folder with vmware-rpctool
	disk  string // folder for the state of cloud-init
}

func newMachine(t *testing.T, extraConfig map[string]string) *machine {
	t.Helper()
	g := NewWithT(t)
	m := &machine{state: filepath.Join(t.TempDir(), "guestinfo.json"), tools: t.TempDir(), disk: t.TempDir()}
	tool, err := os.ReadFile("testdata/rpctool.py")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(os.WriteFile(filepath.Join(m.tools, "vmware-rpctool"), tool, 0o755)).To(Succeed())
	m.setGuestinfo(t, extraConfig)
	return m
}

func (m *machine) setGuestinfo(t *testing.T, extraConfig map[string]string) {
	t.Helper()
	g := NewWithT(t)
	data, err := json.Marshal(extraConfig)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(os.WriteFile(m.state, data, 0o600)).To(Succeed())
}

func (m *machine) guestinfo(t *testing.T) map[string]string {
	t.Helper()
	g := NewWithT(t)
	data, err := os.ReadFile(m.state)
	g.Expect(err).NotTo(HaveOccurred())
	values := map[string]string{}
	g.Expect(json.Unmarshal(data, &values)).To(Succeed())
	return values
}

// bootReport is the output of testdata/boot.py.
type bootReport struct {
	Found          bool
	NewInstance    bool
	InstanceID     string
	Hostname       string
	ProviderID     string
	WaitOnNetwork  map[string]bool
	Network        map[string]any
	NetworkFiles   map[string]string
	Userdata       bool
	UserdataSHA256 string
	Rendered       string
}

// boot restarts cloud-init. Guestinfo and its disk survive from the previous boot.
func (m *machine) boot(t *testing.T) bootReport {
	t.Helper()
	g := NewWithT(t)
	var stderr bytes.Buffer
	cmd := exec.Command(python, "testdata/boot.py", t.TempDir(), m.disk)
	cmd.Env = append(os.Environ(), "GUESTINFO_STATE="+m.state, "PATH="+m.tools+":"+os.Getenv("PATH"))
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	g.Expect(err).NotTo(HaveOccurred(), stderr.String())
	var report bootReport
	g.Expect(json.Unmarshal(out, &report)).To(Succeed(), string(out))
	return report
}

func sha256Of(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func TestCloudInitReadsTheRenderedGuestinfo(t *testing.T) {
	needCloudInit(t)
	g := NewWithT(t)
	in := input()
	values, err := guestinfo.Render(in)
	g.Expect(err).NotTo(HaveOccurred())

	got := newMachine(t, values).boot(t)

	g.Expect(got.Found).To(BeTrue())
	g.Expect(got.InstanceID).To(Equal(in.InstanceID))
	g.Expect(got.Hostname).To(Equal(in.Hostname))
	g.Expect(got.ProviderID).To(Equal(in.ProviderID))
	g.Expect(got.WaitOnNetwork).To(BeNil())
	g.Expect(got.UserdataSHA256).To(Equal(sha256Of(in.BootstrapData)))
	g.Expect(got.Network).To(Equal(metadataOf(t, values)["network"]))
}

func TestCloudInitRendersTheProviderIDForKubelet(t *testing.T) {
	needCloudInit(t)
	g := NewWithT(t)
	in := input()
	values, err := guestinfo.Render(in)
	g.Expect(err).NotTo(HaveOccurred())

	got := newMachine(t, values).boot(t)

	g.Expect(got.Rendered).To(ContainSubstring(`provider-id: "` + in.ProviderID + `"`))
	g.Expect(got.Rendered).To(ContainSubstring(`name: "` + in.Hostname + `"`))
	g.Expect(got.Rendered).NotTo(ContainSubstring("{{"))
}

func TestCloudInitSetsUpTheNetwork(t *testing.T) {
	needCloudInit(t)
	g := NewWithT(t)
	values, err := guestinfo.Render(input())
	g.Expect(err).NotTo(HaveOccurred())

	files := newMachine(t, values).boot(t).NetworkFiles

	g.Expect(strings.Count(files["netplan"], "via: 192.168.100.1\n")).To(Equal(1))
	g.Expect(strings.Count(files["netplan"], "0.0.0.0/0")).To(Equal(1))
	g.Expect(files["netplan"]).To(ContainSubstring("dhcp-identifier: mac"))
	g.Expect(strings.Count(files["networkd"], "Gateway=")).To(Equal(1))
	g.Expect(files["networkd"]).To(ContainSubstring("Destination=0.0.0.0/0"))
	g.Expect(files["networkd"]).To(ContainSubstring("UseRoutes=False"))
	g.Expect(files["eni"]).To(MatchRegexp(`route add default (gw|via) 192\.168\.100\.1`))
	for renderer, text := range files {
		g.Expect(text).To(ContainSubstring("192.168.100.10/24"), renderer)
		g.Expect(text).To(ContainSubstring("10.20.0.10/24"), renderer)
		g.Expect(text).NotTo(ContainSubstring("10.20.0.1\n"), "%s: a further NIC has no gateway", renderer)
		g.Expect(text).To(ContainSubstring("192.168.100.53"), renderer)
	}
}

func TestCloudInitFindsTheSameInstanceOnTheSecondBoot(t *testing.T) {
	needCloudInit(t)
	tests := []struct {
		name  string
		clear bool
	}{
		{"after cloud-init has redacted user data", false},
		{"after we have cleared user data as well", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			values, err := guestinfo.Render(input())
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(guestinfo.Redacted(values)).To(BeFalse())
			m := newMachine(t, values)

			first := m.boot(t)
			left := m.guestinfo(t)
			g.Expect(guestinfo.Redacted(left)).To(BeTrue(), "cloud-init redacts the keys in the metadata")
			if tt.clear {
				merge(left, guestinfo.ClearUserdata())
				m.setGuestinfo(t, left)
			}
			second := m.boot(t)

			g.Expect(first.NewInstance).To(BeTrue())
			g.Expect(first.Userdata).To(BeTrue())
			g.Expect(second.NewInstance).To(BeFalse(), "once-per-instance modules must not run again")
			g.Expect(second.Userdata).To(BeFalse())
			g.Expect(second.Found).To(BeTrue())
			g.Expect(second.InstanceID).To(Equal(first.InstanceID))
			g.Expect(second.Hostname).To(Equal(first.Hostname))
			g.Expect(second.Network).To(Equal(first.Network))
			g.Expect(second.NetworkFiles).To(Equal(first.NetworkFiles))
			g.Expect(guestinfo.Redacted(m.guestinfo(t))).To(BeTrue())
		})
	}
}

// If a guest cannot redact its data (an image that forbids info-set), the controller clears it before the next boot.
func TestCloudInitFindsTheInstanceAfterTheControllerClearedIt(t *testing.T) {
	needCloudInit(t)
	g := NewWithT(t)
	in := input()
	values, err := guestinfo.Render(in)
	g.Expect(err).NotTo(HaveOccurred())
	merge(values, guestinfo.ClearUserdata())

	got := newMachine(t, values).boot(t)

	g.Expect(got.Found).To(BeTrue())
	g.Expect(got.Userdata).To(BeFalse())
	g.Expect(got.InstanceID).To(Equal(in.InstanceID))
}

func TestCloudInitWaitsForAnAddressByDHCP(t *testing.T) {
	needCloudInit(t)
	g := NewWithT(t)
	values, err := guestinfo.Render(input(func(in *guestinfo.Input) {
		in.NICs = []guestinfo.NIC{{
			MAC:     "00:50:56:01:02:03",
			Name:    "eth0",
			Mode:    guestinfo.ModeDHCP,
			Primary: true,
			DHCP:    guestinfo.DHCP{UseHostname: new(bool), SendHostname: new(true), Hostname: "node.example.com"},
		}}
	}))
	g.Expect(err).NotTo(HaveOccurred())

	got := newMachine(t, values).boot(t)

	g.Expect(got.NetworkFiles["networkd"]).To(And(ContainSubstring("UseHostname=False"), ContainSubstring("SendHostname=True"),
		ContainSubstring("Hostname=node.example.com")))
	g.Expect(got.WaitOnNetwork).To(Equal(map[string]bool{"ipv4": true}))
	g.Expect(got.NetworkFiles["networkd"]).To(ContainSubstring("DHCP=ipv4"))
	g.Expect(got.NetworkFiles["networkd"]).NotTo(ContainSubstring("UseRoutes"))
}

func TestCloudInitWaitsForAnIPv6Address(t *testing.T) {
	needCloudInit(t)
	g := NewWithT(t)
	values, err := guestinfo.Render(input(func(in *guestinfo.Input) {
		in.NICs = []guestinfo.NIC{{
			MAC:      "00:50:56:01:02:03",
			Name:     "eth0",
			Mode:     guestinfo.ModeDHCP,
			Primary:  true,
			IPv6Only: true,
		}}
	}))
	g.Expect(err).NotTo(HaveOccurred())

	got := newMachine(t, values).boot(t)

	g.Expect(got.WaitOnNetwork).To(Equal(map[string]bool{"ipv6": true}))
	g.Expect(got.NetworkFiles["networkd"]).To(ContainSubstring("DHCP=ipv6"))
}

func TestCloudInitSchemaAcceptsRoundTrippedUserdata(t *testing.T) {
	needCloudInit(t)
	g := NewWithT(t)
	in := input(func(in *guestinfo.Input) { in.BootstrapData = cloudConfigWithoutJinja })
	values, err := guestinfo.Render(in)
	g.Expect(err).NotTo(HaveOccurred())
	userdata := decode(t, values[guestinfo.KeyUserdata])

	g.Expect(userdata).To(Equal(in.BootstrapData))
	expectSchemaAccepts(t, userdata)
}

func TestCloudInitSchemaAcceptsNetworkConfig(t *testing.T) {
	needCloudInit(t)
	help, err := exec.Command("cloud-init", "schema", "--help").CombinedOutput()
	if err != nil || !bytes.Contains(help, []byte("--schema-type")) {
		t.Skip("this cloud-init has no schema for network configurations: install version 24.1 or later")
	}
	g := NewWithT(t)
	values, err := guestinfo.Render(input())
	g.Expect(err).NotTo(HaveOccurred())
	network, err := json.Marshal(map[string]any{"network": metadataOf(t, values)["network"]})
	g.Expect(err).NotTo(HaveOccurred())

	expectSchemaAccepts(t, network, "--schema-type", "network-config")
}

func expectSchemaAccepts(t *testing.T, config []byte, args ...string) {
	t.Helper()
	g := NewWithT(t)
	file := filepath.Join(t.TempDir(), "config")
	g.Expect(os.WriteFile(file, config, 0o600)).To(Succeed())
	out, err := exec.Command("cloud-init",
		append([]string{"schema", "--config-file", file}, args...)...).CombinedOutput()
	g.Expect(err).NotTo(HaveOccurred(), string(out))
	g.Expect(string(out)).To(ContainSubstring("Valid"))
}

func merge(into, from map[string]string) {
	for key, value := range from {
		into[key] = value
	}
}
