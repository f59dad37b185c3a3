// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/klog/v2"
	"sigs.k8s.io/cluster-api/test/framework/clusterctl"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework"
)

var enabled = flag.Bool("e2e", false, "Run the end-to-end specs; without it they are skipped.")

// ctx is the context of all specs. It is a variable because specs use it while Ginkgo builds their tree.
var ctx = context.Background()

// BeforeSuite sets these variables, which all specs share.
var (
	shared           suite
	config           *clusterctl.E2EConfig
	clusterctlConfig string
	management       *proxy
	artifacts        string
)

func TestE2E(t *testing.T) {
	if !*enabled {
		t.Skip("the end-to-end specs take minutes: run them with make e2e, or with go test ./e2e -e2e")
	}
	t.Setenv("TMPDIR", t.TempDir()) // The framework leaves kubeconfigs there.
	RegisterFailHandler(Fail)
	RunSpecs(t, "Cluster API's shared specs")
}

var _ = BeforeSuite(func() {
	log.SetLogger(klog.NewKlogr())
	root, err := framework.Root()
	Expect(err).NotTo(HaveOccurred())
	dir := filepath.Join(root, "out", "e2e")
	artifacts = filepath.Join(dir, "artifacts")
	Expect(os.RemoveAll(artifacts)).To(Succeed())
	Expect(os.MkdirAll(artifacts, 0o750)).To(Succeed())

	shared, err = startSuite(ctx, dir)
	Expect(err).NotTo(HaveOccurred())
	variables := variables(shared)
	for name := range variables {
		Expect(os.Unsetenv(name)).To(Succeed()) // The framework and clusterctl prefer the environment.
	}
	config = &clusterctl.E2EConfig{Variables: variables, Intervals: intervals()}
	clusterctlConfig, err = writeRepository(shared, variables)
	Expect(err).NotTo(HaveOccurred())
	management = newProxy(shared)
})

// Each spec deletes its cluster. Afterwards, no orphaned resources may exist in VCD, VCD may not have received unknown
// requests, and no program may have exited.
var _ = AfterEach(func() {
	Eventually(shared.Left).WithPolling(time.Second).Should(BeEmpty(), "orphaned resources in the simulated VCD")
	Expect(shared.Failed()).NotTo(Receive(), "a program exited unexpectedly")
})

var _ = AfterSuite(func() {
	if shared.Site != nil {
		Expect(shared.Close()).To(Succeed())
	}
})
