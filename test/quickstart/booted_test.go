package main

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack/programs"
)

var realNodes = flag.Bool("real-nodes", false, "boot VMs that become real nodes; needs root and make node-image")

func TestTheCloudControllerManagerIsThatOfTheImage(t *testing.T) {
	g := NewWithT(t)
	img := bootedImage{images: []string{
		"registry.example.com:5000/a/manager:v3", "registry.example.com:5000/a/cloud-provider-for-cloud-director:v3.1.0",
	}}
	g.Expect(img.managerArgs()).To(Equal([]string{"--cloud-provider-version=v3.1.0"}))
	g.Expect(bootedImage{}.managerArgs()).To(BeEmpty())
}

// TestAClusterOfRealNodes creates one, reaches a Service of type LoadBalancer in it, deletes it and finds nothing left.
func TestAClusterOfRealNodes(t *testing.T) {
	g := NewWithT(t)
	if !*realNodes {
		t.Skip("make e2e-real runs it")
	}
	cache, err := programs.DefaultCache()
	g.Expect(err).NotTo(HaveOccurred())
	record := filepath.Join(cache, "nodes", nodeImage(programs.KubernetesVersion)+".json")
	if _, err := os.Stat(record); err != nil || os.Geteuid() != 0 {
		t.Skipf("it needs root and %s: run make node-image", record)
	}
	root, err := framework.Root()
	g.Expect(err).NotTo(HaveOccurred())
	dir := filepath.Join(root, "out", "e2e-real") // logs of a run that failed stay
	code := command(t.Context(), []string{"--real", "--workers=1", "--timeout=8m", "--dir=" + dir}, os.Stdout)

	g.Expect(code).To(BeZero())
	g.Expect(bootedDir).NotTo(BeADirectory(), "VMs left files")
}
