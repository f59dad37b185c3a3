// SPDX-License-Identifier: Apache-2.0

// Package move tests clusterctl move: a running cluster moves to another management cluster and back.
package move

import (
	"bytes"
	"context"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/klog/v2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/simsite"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack/programs"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

const (
	name      = "moving"
	namespace = "default"
	timeout   = 10 * time.Minute // for a complete cluster
)

func TestRunningClusterMovesThereAndBack(t *testing.T) {
	if testing.Short() {
		t.Skip("starts two management clusters, and -short is set")
	}
	log.SetLogger(klog.Background())
	s := newEnvironment(t)
	s.createCluster(s.home)
	s.available(s.home, 2)
	s.cloudProviderInstalled(s.home)
	vms := s.vms()
	before := len(s.site.Simulator.Requests())
	installed := s.installedObjects()
	claimed := s.addressesByClaim(s.home)
	s.Expect(claimed).To(HaveLen(3), "two nodes and the virtual IP")

	s.waitForMoveBlock(s.home)

	t.Log("moving away")
	s.move(s.home, s.away)
	s.available(s.away, 2)
	s.cloudProviderInstalled(s.away)
	s.waitForMoveBlock(s.away)
	s.Expect(s.installedObjects()).To(Equal(installed), "the workload cluster is unchanged")
	s.expectNoObjects(s.home)
	s.Expect(s.addressesByClaim(s.away)).To(Equal(claimed))
	s.Expect(s.vms()).To(Equal(vms), "the VMs are unchanged by the move")
	s.Expect(simsite.Writes(s.site.Simulator, before)).To(BeEmpty(), "writes to VCD during the move")

	t.Log("scaling and rotating credentials after the move")
	s.scale(s.away, 2)
	s.available(s.away, 3)
	s.rotate(s.away, token)
	s.cloudProviderInstalled(s.away)
	installed = s.installedObjects()
	vms = s.vms()
	before = len(s.site.Simulator.Requests())
	grown := s.addressesByClaim(s.away)
	s.Expect(grown).To(HaveLen(4))
	for claim, address := range claimed {
		s.Expect(grown).To(HaveKeyWithValue(claim, address))
	}

	t.Log("moving back, killed during creation: nothing is deleted yet, so a second move can start")
	s.killedMove(s.away, s.home, func() bool { return s.exists(s.home, &clusterv1.MachineList{}) })
	s.pause(s.away, false) // clusterctl does not move paused clusters.
	t.Log("moving back, killed during deletion: all objects are at the target, so the rest is removed manually")
	s.killedMove(s.away, s.home, func() bool { return !s.exists(s.away, &infrav1.VCDMachineList{}) })
	s.pause(s.home, false)
	s.removeRemains(s.away)
	s.available(s.home, 3)
	s.cloudProviderInstalled(s.home)
	s.Expect(s.installedObjects()).To(Equal(installed), "the workload cluster is unchanged")
	s.rotate(s.home, "")
	s.expectNoObjects(s.away)
	s.Expect(s.addressesByClaim(s.home)).To(Equal(grown))
	s.Expect(s.vms()).To(Equal(vms), "the VMs are unchanged by a killed move")
	s.Expect(simsite.Writes(s.site.Simulator, before)).To(BeEmpty(), "writes to VCD during a killed move")

	s.expectAllLoginsSucceeded()

	t.Log("deleting")
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}}
	s.Expect(s.home.client.Delete(t.Context(), cluster)).To(Succeed())
	s.Eventually(func() bool { return s.exists(s.home, &clusterv1.ClusterList{}) }, timeout, "250ms").Should(BeFalse())
	s.Expect(s.site.Left()).To(BeEmpty(), "orphaned resources in the simulated VCD")
	s.Eventually(func() map[string]string { return s.addressesByClaim(s.home) }, timeout, "250ms").Should(BeEmpty())
}

// createCluster creates the cluster from the template for IPAM. The Secrets with the credentials have no label of this
// provider, as if a user created them. All addresses are claimed from pools.
func (s *environment) createCluster(h cluster) {
	manifest, err := h.Clusterctl(s.t.Context(), "generate", "cluster", name, "--infrastructure=vcd:"+version,
		"--flavor=ipam", "--target-namespace="+namespace, "--kubernetes-version="+programs.KubernetesVersion,
		"--control-plane-machine-count=1", "--worker-machine-count=1")
	s.Expect(err).NotTo(HaveOccurred())
	documents := strings.Split(string(manifest), "\n---\n")
	kept := slices.DeleteFunc(slices.Clone(documents),
		func(d string) bool { return strings.Contains(d, "\nkind: Secret\n") })
	s.Expect(kept).To(HaveLen(len(documents)-2), "the template has Secrets for the manager and the CCM")
	users := s.site.Simulator.State().Model.Orgs[1].Users
	for suffix, user := range map[string]vcdsim.User{"-credentials": users[1], "-ccm-credentials": users[2]} {
		s.Expect(h.client.Create(s.t.Context(), &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: name + suffix, Namespace: namespace},
			StringData: map[string]string{
				infrav1.SecretUsername: user.Name,
				infrav1.SecretPassword: user.Password,
				infrav1.SecretCABundle: string(s.site.Simulator.CA()),
			},
		})).To(Succeed())
	}
	_, err = h.Kubectl(s.t.Context(), strings.NewReader(movedPools+"---\n"+
		s.asAccount(h, strings.Join(kept, "\n---\n"))), "apply", "-f", "-")
	s.Expect(err).NotTo(HaveOccurred())
}

// available waits until the cluster is available and has the given number of machines, which are all ready nodes.
func (s *environment) available(h cluster, machines int) {
	s.t.Helper()
	s.Eventually(func(g Gomega) {
		cluster := &clusterv1.Cluster{}
		g.Expect(h.client.Get(s.t.Context(), types.NamespacedName{Namespace: namespace, Name: name},
			cluster)).To(Succeed())
		g.Expect(condition(cluster, clusterv1.AvailableCondition)).To(Equal("True"))
		infra := &infrav1.VCDCluster{}
		g.Expect(h.client.Get(s.t.Context(), types.NamespacedName{Namespace: namespace, Name: name},
			infra)).To(Succeed())
		g.Expect(condition(infra, clusterv1.ReadyCondition)).To(Equal("True"))
		list := &clusterv1.MachineList{}
		g.Expect(h.client.List(s.t.Context(), list)).To(Succeed())
		g.Expect(list.Items).To(HaveLen(machines))
		for i := range list.Items {
			g.Expect(condition(&list.Items[i], clusterv1.ReadyCondition)).To(Equal("True"), list.Items[i].Name)
			g.Expect(list.Items[i].Status.NodeRef.Name).NotTo(BeEmpty())
		}
		vcdMachines := &infrav1.VCDMachineList{}
		g.Expect(h.client.List(s.t.Context(), vcdMachines)).To(Succeed())
		g.Expect(vcdMachines.Items).To(HaveLen(machines))
		for i := range vcdMachines.Items {
			g.Expect(condition(&vcdMachines.Items[i], clusterv1.ReadyCondition)).To(Equal("True"),
				vcdMachines.Items[i].Name)
		}
	}, timeout, "250ms").Should(Succeed())
}

func condition(object interface{ GetConditions() []metav1.Condition }, kind string) string {
	for _, c := range object.GetConditions() {
		if c.Type == kind {
			return string(c.Status)
		}
	}
	return "absent"
}

// scale changes the number of workers.
func (s *environment) scale(h cluster, workers int32) {
	md := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: name + "-md-0", Namespace: namespace}}
	s.Expect(h.client.Get(s.t.Context(), client.ObjectKeyFromObject(md), md)).To(Succeed())
	before := md.DeepCopy()
	md.Spec.Replicas = &workers
	s.Expect(h.client.Patch(s.t.Context(), md, client.MergeFrom(before))).To(Succeed())
}

// move runs clusterctl move to completion.
func (s *environment) move(from, to cluster) {
	s.t.Helper()
	_, err := from.Clusterctl(s.t.Context(), "move", "--namespace="+namespace, "--to-kubeconfig="+to.Kubeconfig())
	s.Expect(err).NotTo(HaveOccurred())
}

// killedMove runs clusterctl move and kills it as soon as seen returns true. From then on, clusterctl receives no
// responses, so that it cannot complete before it is killed, even on a busy machine.
func (s *environment) killedMove(from, to cluster, seen func() bool) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	defer cancel()
	reached := make(chan struct{})
	kubeconfig := s.serveUntil(from, seen, reached)
	cmd := exec.CommandContext(ctx, from.Bin(programs.Clusterctl), "move", "--namespace="+namespace,
		"--kubeconfig="+kubeconfig, "--to-kubeconfig="+to.Kubeconfig(),
		"--config="+filepath.Join(from.Dir(), "clusterctl", "clusterctl.yaml"))
	cmd.Env = append(cmd.Environ(), "CLUSTERCTL_DISABLE_VERSIONCHECK=true")
	var out bytes.Buffer
	cmd.Stdout = &out
	cmd.Stderr = &out
	s.Expect(cmd.Start()).To(Succeed())
	s.Eventually(reached, timeout).Should(BeClosed(), "%s", &out)
	s.Expect(cmd.Process.Kill()).To(Succeed())
	s.Expect(cmd.Wait()).To(MatchError(ContainSubstring("killed")), "clusterctl exited before it was killed: %s", &out)
}

// serveUntil starts a proxy to the API server of a management cluster, and returns the path of a kubeconfig for it.
// Once seen returns true, the proxy closes reached, and holds the current request and all later ones.
func (s *environment) serveUntil(h cluster, seen func() bool, reached chan<- struct{}) string {
	s.t.Helper()
	target, err := url.Parse(h.RESTConfig().Host)
	s.Expect(err).NotTo(HaveOccurred())
	transport, err := rest.TransportFor(h.RESTConfig())
	s.Expect(err).NotTo(HaveOccurred())
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     transport,
		FlushInterval: -1,
	}
	report := sync.OnceFunc(func() { close(reached) })
	front := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if seen() {
			report()
			<-r.Context().Done() // until clusterctl is killed
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	s.t.Cleanup(front.Close)
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{
		Server: front.URL,
		CertificateAuthorityData: pem.EncodeToMemory(&pem.Block{
			Type:  "CERTIFICATE",
			Bytes: front.Certificate().Raw,
		}),
	}
	config.Contexts["c"] = &clientcmdapi.Context{Cluster: "c"}
	config.CurrentContext = "c"
	path := filepath.Join(s.t.TempDir(), "kubeconfig")
	s.Expect(clientcmd.WriteToFile(*config, path)).To(Succeed())
	return path
}

// pause pauses or unpauses a cluster.
func (s *environment) pause(h cluster, paused bool) {
	s.t.Helper()
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}}
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"paused":%t}}`, paused))
	s.Expect(h.client.Patch(s.t.Context(), cluster, patch)).To(Succeed())
}

// removeRemains removes the remains of a killed move, as described in docs/operate/move-clusters.md.
func (s *environment) removeRemains(h cluster) {
	s.t.Helper()
	const kinds = "machines,machinesets,machinedeployments,kubeadmcontrolplanes,kubeadmconfigs,kubeadmconfigtemplates,vcdclusters,vcdmachines,vcdmachinetemplates,vcdidentities,clusterresourcesets,clusterresourcesetbindings,secrets,ipaddressclaims,ipaddresses.ipam.cluster.x-k8s.io,clusters"
	out, err := h.Kubectl(s.t.Context(), nil, "get", "--namespace="+namespace, "--output=name", kinds)
	s.Expect(err).NotTo(HaveOccurred())
	for object := range strings.FieldsSeq(string(out)) {
		_, err = h.Kubectl(s.t.Context(), nil, "delete", "--namespace="+namespace, "--ignore-not-found", "--wait=false",
			"--cascade=orphan", object)
		s.Expect(err).NotTo(HaveOccurred())
		_, err = h.Kubectl(s.t.Context(), nil, "patch", "--namespace="+namespace, "--type=merge",
			`--patch={"metadata":{"finalizers":null}}`, object)
		s.Expect(err == nil || strings.Contains(err.Error(), "NotFound")).To(BeTrue(), "%v", err)
	}
	s.Eventually(func() error { // The webhook of the pools rejects the deletion until it observes that no addresses are allocated.
		_, err := h.Kubectl(s.t.Context(), nil, "delete", "--namespace="+namespace, "--all", "inclusterippools")
		return err
	}, timeout, "250ms").Should(Succeed())
}

// exists reports whether objects of the list's kind exist.
func (s *environment) exists(h cluster, list client.ObjectList) bool {
	s.Expect(h.client.List(s.t.Context(), list, client.InNamespace(namespace), client.Limit(1))).To(Succeed())
	return listLen(list) > 0
}
