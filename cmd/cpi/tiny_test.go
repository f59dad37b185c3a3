package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/cpitest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/cpitest/tiny"
)

// tinyProvider is a second entry of the registry. Its configuration is the id of the cluster.
func tinyProvider(cloud *tiny.Cloud) provider {
	return provider{name: tiny.Name, load: func(from source) (*configuration, error) {
		cluster := strings.TrimSpace(string(from.file))
		return &configuration{open: func(host) (*backend, error) { return &backend{Backend: cloud.Backend(cluster)}, nil }}, nil
	}}
}

func TestAnotherCloudFulfilsTheContract(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config")
	NewWithT(t).Expect(os.WriteFile(path, []byte("c1\n"), 0o600)).To(Succeed())
	cpitest.Run(t, func(t *testing.T) cpitest.Cloud {
		cloud := tiny.New()
		return cpitest.TinyCloud(cloud, func(process cpitest.Process) cpi.Backend {
			g := NewWithT(t)
			chosen, err := find([]provider{vcdProvider(), tinyProvider(cloud)}, tiny.Name)
			g.Expect(err).NotTo(HaveOccurred())
			p, err := load(chosen, path, &ourFlags{}, fromEnv)
			g.Expect(err).NotTo(HaveOccurred())
			b, err := p.open(host{nodes: process.Nodes})
			g.Expect(err).NotTo(HaveOccurred())
			return b.Backend
		})
	})
}

func TestAnotherCloudIsChosenByItsName(t *testing.T) {
	g := NewWithT(t)

	out, err := runOf(t, []provider{vcdProvider(), tinyProvider(tiny.New())}, "c1", nil, "--cloud-provider=tiny", "--validate-config")

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(out).To(ContainSubstring("The configuration is right."))
}
