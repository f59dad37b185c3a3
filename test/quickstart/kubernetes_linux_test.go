// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack/programs"
)

var (
	kubernetesTests = flag.String("kubernetes-tests", "",
		"folder with e2e.test and ginkgo, from which Kubernetes' own tests run in a cluster of real nodes")
	kubernetesLists = flag.String("kubernetes-lists", "conformance",
		"lists of specs to run, each a file of test/kubernetes without .txt, separated by commas")
	kubernetesProcs = flag.Int("kubernetes-procs", 4, "how many specs run at a time")
)

// TestKubernetesItself runs the end-to-end tests of Kubernetes in a cluster of real nodes. Checked-in lists select
// them.
func TestKubernetesItself(t *testing.T) {
	needsRealNodes(t, programs.KubernetesVersion)
	if *kubernetesTests == "" {
		t.Skip("make conformance-kubernetes runs it")
	}
	s := newRealCluster(t, func(o *options) { o.workers = 2 })
	for list := range strings.SplitSeq(*kubernetesLists, ",") {
		s.run(list, func(s *realCluster) { s.runSpecs(list) })
	}
	s.deleteCluster()
}

// runSpecs runs the specs of a list, and writes their output and a report to the folder of logs.
func (s *realCluster) runSpecs(name string) {
	folder := s.q.logDir()
	list := filepath.Join(s.q.root, "test/kubernetes", name+".txt")
	output, err := os.Create(filepath.Join(folder, name+".log"))
	s.Expect(err).NotTo(HaveOccurred())
	defer func() { _ = output.Close() }() // written by a process that has exited
	cmd := exec.CommandContext(s.t.Context(), filepath.Join(*kubernetesTests, "ginkgo"),
		"--procs="+strconv.Itoa(*kubernetesProcs), "--no-color", "--timeout=90m", "--output-dir="+folder,
		"--json-report="+name+".json", filepath.Join(*kubernetesTests, "e2e.test"), "--",
		"--list="+list, "--kubeconfig="+s.q.kubeconfig(), "--provider=skeleton", "--allowed-not-ready-nodes=0",
		"--dump-logs-on-failure=false")
	cmd.Env = append(os.Environ(), "HTTP_PROXY="+s.q.booted.proxyURL, "HTTPS_PROXY="+s.q.booted.proxyURL,
		"PATH="+s.q.programs.Dir()+":"+os.Getenv("PATH"))
	cmd.Dir = folder
	cmd.Stdout = output
	cmd.Stderr = output
	s.Expect(cmd.Run()).To(Succeed(), "see %s", output.Name())
}
