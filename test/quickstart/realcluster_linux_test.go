// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack/programs"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/hypervisor"
)

const (
	nodeWithin    = 5 * time.Minute // for the creation or replacement of a node
	rolloutWithin = 15 * time.Minute
	pollTest      = time.Second
)

// A realCluster is a cluster of real nodes, which the parts of a test share.
type realCluster struct {
	*WithT

	t *testing.T
	q *quickstart
}

// needsRealNodes skips a test if VMs cannot boot, or if the test was not requested.
func needsRealNodes(t *testing.T, versions ...string) {
	t.Helper()
	g := NewWithT(t)
	if !*realNodes {
		t.Skip("make e2e-real runs it")
	}
	cache, err := programs.DefaultCache()
	g.Expect(err).NotTo(HaveOccurred())
	for _, version := range versions {
		record := filepath.Join(cache, "nodes", nodeImage(version)+".json")
		if _, err := os.Stat(record); err != nil || os.Geteuid() != 0 {
			t.Skipf("it needs root and %s: run make node-image KUBERNETES=%s", record, version)
		}
	}
	if missing := (*hypervisor.MissingError)(nil); errors.As(hypervisor.Check(bootedDir), &missing) {
		t.Skip(missing)
	}
}

// newRealCluster creates a cluster.
func newRealCluster(t *testing.T, changes ...func(*options)) *realCluster {
	t.Helper()
	s := newRealSite(t, changes...)
	s.Expect(s.q.bringUp(t.Context())).To(Succeed())
	return s
}

// newRealSite prepares a cluster without creating it. The cleanup of the test stops all programs, and checks that they
// leave no processes or files.
func newRealSite(t *testing.T, changes ...func(*options)) *realCluster {
	t.Helper()
	g := NewWithT(t)
	root, err := framework.Root()
	g.Expect(err).NotTo(HaveOccurred())
	opts, err := parse([]string{
		"--real",
		"--workers=1",
		"--timeout=10m",
		"--dir=" + filepath.Join(root, "out", "e2e-real", t.Name()),
	}, os.Stdout)
	g.Expect(err).NotTo(HaveOccurred())
	for _, change := range changes {
		change(&opts)
	}
	s := &realCluster{WithT: g, t: t, q: newQuickstart(opts, os.Stdout)}
	t.Cleanup(func() {
		if t.Failed() {
			_ = s.q.keepLogs() // best effort after another failure
		}
		g.Expect(s.q.close()).To(Succeed())
		g.Expect(hypervisor.Left(bootedDir)).To(BeEmpty(), "leftovers on this machine")
		g.Expect(bootedDir).NotTo(BeADirectory(), "VMs left files")
	})
	return s
}

// run runs a part of the test, unless an earlier part failed.
func (s *realCluster) run(name string, part func(*realCluster)) {
	s.t.Helper()
	passed := s.t.Run(name, func(t *testing.T) {
		started := time.Now()
		part(&realCluster{WithT: NewWithT(t), t: t, q: s.q})
		t.Logf("%s: %s", name, time.Since(started).Round(time.Second))
	})
	if !passed {
		s.t.FailNow()
	}
}

// deleteCluster deletes the cluster, and checks that it leaves nothing in VCD and on this machine.
func (s *realCluster) deleteCluster() {
	s.Expect(s.q.deleteCluster(s.t.Context())).To(Succeed())
	s.Eventually(func() []string { return hypervisor.Left(bootedDir) }, nodeWithin, pollTest).Should(BeEmpty())
}

// config returns the client configuration from the kubeconfig of the cluster.
func (s *realCluster) config() *rest.Config {
	config, err := clientcmd.BuildConfigFromFlags("", s.q.kubeconfig())
	s.Expect(err).NotTo(HaveOccurred())
	config.Timeout = 10 * time.Second
	return config
}

// workload returns a client for the cluster, which also supports the kinds of a management cluster.
func (s *realCluster) workload() client.Client { return s.clientOf(s.config()) }

// workloadThrough is like workload, but connects to the API server of one node.
func (s *realCluster) workloadThrough(node string) client.Client {
	config := s.config()
	config.Host = "https://" + net.JoinHostPort(node, "6443")
	return s.clientOf(config)
}

func (s *realCluster) clientOf(config *rest.Config) client.Client {
	scheme := runtime.NewScheme()
	s.Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	s.Expect(clusterv1.AddToScheme(scheme)).To(Succeed())
	s.Expect(infrav1.AddToScheme(scheme)).To(Succeed())
	c, err := client.New(config, client.Options{Scheme: scheme})
	s.Expect(err).NotTo(HaveOccurred())
	return c
}

// kubectl runs kubectl against the cluster.
func (s *realCluster) kubectl(args ...string) string {
	return s.manage("", append([]string{"--kubeconfig=" + s.q.kubeconfig()}, args...)...)
}

// manage runs kubectl against the management cluster.
func (s *realCluster) manage(in string, args ...string) string {
	s.t.Helper()
	out, err := s.q.stack.Kubectl(s.t.Context(), strings.NewReader(in), args...)
	s.Expect(err).NotTo(HaveOccurred(), "kubectl %s", strings.Join(args, " "))
	return strings.TrimSpace(string(out))
}

// inVM runs a command in a VM.
func (s *realCluster) inVM(vm string, args ...string) string {
	s.t.Helper()
	out, err := s.tryInVM(vm, args...)
	s.Expect(err).NotTo(HaveOccurred(), "%s in %s: %s", args, vm, out)
	return out
}

func (s *realCluster) tryInVM(vm string, args ...string) (string, error) {
	cmd, err := hypervisor.Command(s.t.Context(), bootedDir, vm, args...)
	if err != nil {
		return "", err
	}
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// machines returns the Machines of control planes or of workers.
func (s *realCluster) machines(controlPlanes bool) []clusterv1.Machine {
	s.t.Helper()
	var all clusterv1.MachineList
	s.Expect(s.q.client.List(s.t.Context(), &all, client.InNamespace(clusterNamespace))).To(Succeed())
	var found []clusterv1.Machine
	for _, m := range all.Items {
		if _, is := m.Labels[clusterv1.MachineControlPlaneLabel]; is == controlPlanes {
			found = append(found, m)
		}
	}
	return found
}

func (s *realCluster) worker() string {
	workers := s.machines(false)
	s.Expect(workers).To(HaveLen(1))
	return workers[0].Name
}

func (s *realCluster) vcdMachine(name string) *infrav1.VCDMachine {
	s.t.Helper()
	m := &infrav1.VCDMachine{}
	s.Expect(s.q.client.Get(s.t.Context(), client.ObjectKey{Namespace: clusterNamespace, Name: name}, m)).To(Succeed())
	return m
}

func (s *realCluster) node(name string) *corev1.Node {
	s.t.Helper()
	n := &corev1.Node{}
	s.Expect(s.workload().Get(s.t.Context(), client.ObjectKey{Name: name}, n)).To(Succeed())
	return n
}

// ready reports whether a node is ready, according to a heartbeat after since.
func ready(n *corev1.Node, since time.Time) bool {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue && c.LastHeartbeatTime.After(since)
		}
	}
	return false
}

// vm returns a VM in the simulator.
func (s *realCluster) vm(name string) vcdsim.VM {
	s.t.Helper()
	for _, vm := range s.q.site.Simulator.State().VMs {
		if vm.Name == name {
			return vm
		}
	}
	s.Expect(name).To(BeEmpty(), "the VM does not exist")
	return vcdsim.VM{}
}

// powerOff powers off a VM without a shutdown of its guest, as an administrator of VCD does.
func (s *realCluster) powerOff(name string) {
	s.q.site.Simulator.Edit(func(e *vcdsim.Editor) { e.PowerOff(e.VM(name)) })
}

// waitUntilReady waits until the cluster has the expected number of machines, and all are ready.
func (s *realCluster) waitUntilReady(machines int, within time.Duration) {
	s.t.Helper()
	s.Eventually(func(g Gomega) {
		v, err := s.q.observe(s.t.Context())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(v.available(machines)).To(BeTrue(), strings.Join(v.lines(), "\n"))
	}, within, pollTest).Should(Succeed())
}
