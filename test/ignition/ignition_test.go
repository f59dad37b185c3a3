// SPDX-License-Identifier: Apache-2.0

// Package ignition_test runs the real Ignition with the data of guests, and checks the files that it writes. It uses
// the current Ignition for version 3 of the specification, and Flatcar's older fork for version 2, which Cluster API's
// kubeadm bootstrap provider generates.
package ignition_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"errors"
	"flag"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	"sigs.k8s.io/cluster-api/bootstrap/kubeadm/pkg/cloudinit"
	"sigs.k8s.io/cluster-api/bootstrap/kubeadm/pkg/ignition"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/yamlprocessor"
	"sigs.k8s.io/yaml"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/guestinfo"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/testflavors"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack/programs"
)

var runIgnition = flag.Bool("ignition", false, "build Ignition and run it")

// Names of the programs and of the folders that pin them.
const (
	current = "ignition"
	flatcar = "flatcar"
)

// A program is a version of Ignition with its stages and the flags that each stage needs.
type program struct {
	name   string
	stages []string
	args   []string
}

var (
	version3 = program{
		name:   current,
		stages: []string{"fetch", "files"},
		args:   []string{"-platform=file", "-neednet=neednet", "-state-file=state"},
	}
	version2 = program{
		name:   flatcar,
		stages: []string{"disks", "files"},
		args:   []string{"-oem=file"},
	}
)

var build = sync.OnceValues(func() (*programs.Set, error) {
	here, err := filepath.Abs("programs")
	if err != nil {
		return nil, err
	}
	return programs.BuildGroups(context.Background(), programs.Options{Out: os.Stderr},
		programs.Group{
			Name:     current,
			Folder:   filepath.Join(here, current),
			Ldflags:  "-s -w -X github.com/coreos/ignition/v2/internal/distro.selinuxRelabel=false",
			CGO:      true,
			Programs: []programs.Program{{Name: current, Package: "github.com/coreos/ignition/v2/internal"}},
		},
		programs.Group{
			Name:     flatcar,
			Folder:   filepath.Join(here, flatcar),
			Ldflags:  "-s -w",
			CGO:      true,
			Programs: []programs.Program{{Name: flatcar, Package: "github.com/flatcar/ignition/internal"}},
		})
})

// bin returns the path of a program. It builds the programs once, and skips the test if they cannot be built or run.
func bin(t *testing.T, name string) string {
	t.Helper()
	if !*runIgnition {
		t.Skip("builds two versions of Ignition, which takes minutes with empty caches: make test-ignition runs it")
	}
	if os.Geteuid() != 0 {
		t.Skip("needs root: Ignition changes the owners of files")
	}
	if err := exec.Command("pkg-config", "--exists", "blkid").Run(); err != nil {
		t.Skip("Ignition needs libblkid: install the packages libblkid-dev and pkg-config")
	}
	set, err := build()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return set.Bin(name)
}

// boot runs Ignition with the extra configuration of a VM. image contains the existing files of the guest by path. It
// returns the root folder of the guest.
func boot(t *testing.T, p program, extraConfig map[string]string, image map[string]string) string {
	t.Helper()
	g := NewWithT(t)
	ignition := bin(t, p.name)
	work := t.TempDir()
	root := filepath.Join(work, "root")
	for path, text := range image {
		g.Expect(os.MkdirAll(filepath.Dir(filepath.Join(root, path)), 0o755)).To(Succeed())
		g.Expect(os.WriteFile(filepath.Join(root, path), []byte(text), 0o600)).To(Succeed())
	}
	config := filepath.Join(work, "config.ign")
	g.Expect(os.WriteFile(config, decode(t, extraConfig[guestinfo.KeyIgnition]), 0o600)).To(Succeed())
	for _, stage := range p.stages {
		args := append([]string{"-stage=" + stage, "-root=" + root, "-config-cache=cache", "-log-to-stdout"}, p.args...)
		cmd := exec.CommandContext(t.Context(), ignition, args...)
		cmd.Dir = work
		cmd.Env = append(os.Environ(), "IGNITION_CONFIG_FILE="+config)
		out, err := cmd.CombinedOutput()
		g.Expect(err).NotTo(HaveOccurred(), "%s: %s", stage, out)
	}
	return root
}

// decode decodes a value like Ignition's VMware platform, which cannot run without a hypervisor.
func decode(t *testing.T, value string) []byte {
	t.Helper()
	g := NewWithT(t)
	packed, err := base64.StdEncoding.DecodeString(value)
	g.Expect(err).NotTo(HaveOccurred())
	r, err := gzip.NewReader(bytes.NewReader(packed))
	g.Expect(err).NotTo(HaveOccurred())
	data, err := io.ReadAll(r)
	g.Expect(err).NotTo(HaveOccurred())
	return data
}

// machine returns the input of a machine with two NICs.
func machine(bootstrapData []byte) guestinfo.Input {
	return guestinfo.Input{
		InstanceID:    "0f3c5a0e-6f0e-4b3c-8f57-6d0f7c1f4a11",
		Hostname:      "demo-md-0-x7k2p",
		ProviderID:    "vmware-cloud-director://urn:vcloud:vm:5f0c8d4e-7d2a-4a53-9c3b-1b1f6f0c2d11",
		Format:        guestinfo.FormatIgnition,
		BootstrapData: bootstrapData,
		NICs: []guestinfo.NIC{
			{
				MAC:       "00:50:56:01:00:0a",
				Mode:      guestinfo.ModePool,
				Primary:   true,
				Addresses: []netip.Prefix{netip.MustParsePrefix("192.168.100.10/24")},
				Gateways:  []netip.Addr{netip.MustParseAddr("192.168.100.1")},
				DNS:       []netip.Addr{netip.MustParseAddr("192.168.100.53")},
			},
			{MAC: "00:50:56:01:00:0b", Mode: guestinfo.ModeDHCP},
		},
	}
}

// readFile returns the content of a file of a guest.
func readFile(t *testing.T, root, path string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, path))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return string(data)
}

// expectMachine checks the identity and the network configuration of the guest.
func expectMachine(t *testing.T, root string, in guestinfo.Input) {
	t.Helper()
	g := NewWithT(t)
	g.Expect(readFile(t, root, "etc/systemd/network/20-vcd-nic0.network")).To(Equal(`[Match]
PermanentMACAddress=00:50:56:01:00:0a

[Network]
Address=192.168.100.10/24
DNS=192.168.100.53

[Route]
Destination=0.0.0.0/0
Gateway=192.168.100.1
`))
	g.Expect(readFile(t, root, "etc/systemd/network/20-vcd-nic1.network")).To(ContainSubstring("DHCP=ipv4\n"))
	info, err := os.Stat(filepath.Join(root, "etc/systemd/network/20-vcd-nic0.network"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(info.Mode().Perm()).To(Equal(os.FileMode(0o644)), "systemd-networkd runs without root")
	out, err := exec.CommandContext(t.Context(), "sh", "-ec",
		`. "$1"; printf '%s %s' "$LOCAL_HOSTNAME" "$PROVIDER_ID"`, "sh", filepath.Join(root, "etc/vcd/metadata.env")).Output()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(out)).To(Equal(in.Hostname + " " + in.ProviderID))
}

func TestIgnitionMergesVersion3(t *testing.T) {
	g := NewWithT(t)
	in := machine([]byte(`{"ignition": {"version": "3.4.0"},
"storage": {"files": [
	{"path": "/etc/own", "mode": 384, "contents": {"source": "data:,50%25%20gr%C3%B6%C3%9Fer"}},
	{"path": "/etc/systemd/network/10-own.network", "contents": {"source": "data:,own"}}]},
"systemd": {"units": [{"name": "own.service", "enabled": true, "contents": "[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n"}]}}`))
	extraConfig, err := guestinfo.Render(in)
	g.Expect(err).NotTo(HaveOccurred())

	root := boot(t, version3, extraConfig, map[string]string{"etc/hostname": "image\n"})

	expectMachine(t, root, in)
	g.Expect(readFile(t, root, "etc/hostname")).To(Equal(in.Hostname + "\n"))
	g.Expect(readFile(t, root, "etc/own")).To(Equal("50% größer"))
	g.Expect(readFile(t, root, "etc/systemd/network/10-own.network")).To(Equal("own"))
	g.Expect(readFile(t, root, "etc/systemd/system/own.service")).To(ContainSubstring("ExecStart=/bin/true"))
}

func TestBootstrapDataTakePrecedence(t *testing.T) {
	tests := []struct {
		name, config string
		program      program
	}{
		{
			name:    "version 3",
			config:  `{"ignition":{"version":"3.0.0"},"storage":{"files":[{"path":"/etc/hostname","contents":{"source":"data:,own"}}]}}`,
			program: version3,
		},
		{
			name:    "version 2",
			config:  `{"ignition":{"version":"2.0.0"},"storage":{"files":[{"filesystem":"root","path":"/etc/hostname","contents":{"source":"data:,own"}}]}}`,
			program: version2,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			in := machine([]byte(tt.config))
			extraConfig, err := guestinfo.Render(in)
			g.Expect(err).NotTo(HaveOccurred())

			root := boot(t, tt.program, extraConfig, map[string]string{"etc/hostname": "image\n"})

			expectMachine(t, root, in)
			g.Expect(readFile(t, root, "etc/hostname")).To(Equal("own"))
		})
	}
}

// workers returns the bootstrap configuration of workers in the flavor flatcar.
func workers(t *testing.T) bootstrapv1.KubeadmConfigSpec {
	t.Helper()
	g := NewWithT(t)
	template, err := os.ReadFile(filepath.Join("..", "..", "templates", "cluster-template-flatcar.yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	variables := testflavors.Rendered()
	manifests, err := yamlprocessor.NewSimpleProcessor().Process(template, func(name string) (string, error) {
		if value, ok := variables[name]; ok {
			return value, nil
		}
		return "", errors.New("not set")
	})
	g.Expect(err).NotTo(HaveOccurred())
	for manifest := range bytes.SplitSeq(manifests, []byte("\n---\n")) {
		config := &bootstrapv1.KubeadmConfigTemplate{}
		g.Expect(yaml.Unmarshal(manifest, config)).To(Succeed())
		if config.Kind == "KubeadmConfigTemplate" {
			return config.Spec.Template.Spec
		}
	}
	t.Fatal("the flavor has no KubeadmConfigTemplate")
	return bootstrapv1.KubeadmConfigSpec{}
}

// TestIgnitionAppendsToClusterAPIData uses the data that the kubeadm bootstrap provider generates for the flavor
// flatcar.
func TestIgnitionAppendsToClusterAPIData(t *testing.T) {
	g := NewWithT(t)
	config := workers(t)
	data, _, err := ignition.NewNode(&ignition.NodeInput{
		NodeInput: &cloudinit.NodeInput{
			BaseUserData: cloudinit.BaseUserData{
				PreKubeadmCommands: config.PreKubeadmCommands,
				AdditionalFiles:    []bootstrapv1.File{{Path: "/etc/own", Permissions: "0600", Content: "own"}},
			},
			JoinConfiguration: "kind: JoinConfiguration\nnodeRegistration: {name: $LOCAL_HOSTNAME}",
		},
		Ignition: &config.Ignition,
	})
	g.Expect(err).NotTo(HaveOccurred())
	in := machine(data)
	extraConfig, err := guestinfo.Render(in)
	g.Expect(err).NotTo(HaveOccurred())

	root := boot(t, version2, extraConfig, map[string]string{"etc/hostname": "image\n"})

	expectMachine(t, root, in)
	g.Expect(readFile(t, root, "etc/hostname")).To(Equal(in.Hostname + "\n"))
	g.Expect(readFile(t, root, "etc/own")).To(Equal("own\n"))
	g.Expect(readFile(t, root, "etc/kubeadm.yml")).To(ContainSubstring("kind: JoinConfiguration"))
	g.Expect(readFile(t, root, "etc/systemd/system/kubeadm.service")).To(ContainSubstring("ExecStart=/bin/bash /etc/kubeadm.sh"))
	g.Expect(readFile(t, root, "etc/systemd/system/kubeadm.service.d/10-network-and-containerd.conf")).To(
		ContainSubstring("After=network-online.target containerd.service"))
	script, _, found := strings.Cut(readFile(t, root, "etc/kubeadm.sh"), "kubeadm join")
	g.Expect(found).To(BeTrue())
	out, err := exec.CommandContext(t.Context(), "bash", "-c", strings.ReplaceAll(script, "/etc/", root+"/etc/")).CombinedOutput()
	g.Expect(err).NotTo(HaveOccurred(), string(out))
	g.Expect(readFile(t, root, "etc/kubeadm.yml")).To(ContainSubstring("{name: " + in.Hostname + "}"))
}
