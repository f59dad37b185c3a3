// SPDX-License-Identifier: Apache-2.0

package move

import (
	"os"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/simsite"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

const version = framework.Version

// An environment is one VCD with two management clusters.
type environment struct {
	*WithT

	t          *testing.T
	site       *simsite.Site
	home, away cluster
}

// A cluster is a management cluster.
type cluster struct {
	*framework.ManagementCluster

	client client.Client
}

func newEnvironment(t *testing.T) *environment {
	t.Helper()
	s := &environment{WithT: NewWithT(t), t: t}
	dir, err := os.MkdirTemp("", "move-") //nolint:usetesting // Logs outlive a test that fails.
	s.Expect(err).NotTo(HaveOccurred())
	model := vcdsim.K8sTenant()
	model.Orgs[1].Users[1].APITokens = []string{token}
	s.site, err = simsite.Start(t.Context(), dir, model)
	s.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() {
		s.Expect(s.site.Close()).To(Succeed())
		if t.Failed() {
			t.Log("Logs are kept in", dir)
			return
		}
		s.Expect(os.RemoveAll(dir)).To(Succeed())
	})
	s.home = s.newCluster("home")
	s.away = s.newCluster("away")
	return s
}

func (s *environment) newCluster(dir string) cluster {
	s.t.Helper()
	w, err := s.site.NewManagementCluster(s.t.Context(), framework.Options{
		Dir:                 dir,
		Out:                 os.Stderr,
		StorageVersionsOnly: true,
	})
	s.Expect(err).NotTo(HaveOccurred())
	files, err := simsite.ReleaseFiles(w.Root, w.Components, "templates/cluster-template-ipam.yaml")
	s.Expect(err).NotTo(HaveOccurred())
	variables := s.site.Variables()
	variables["NODE_POOL"] = "nodes"
	variables["CONTROL_PLANE_ENDPOINT_POOL"] = "virtual-ips"
	s.Expect(w.LocalRepository(stack.Repository{Version: version, Files: files, Variables: variables})).To(Succeed())
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, clusterv1.AddToScheme,
		addonsv1.AddToScheme, ipamv1.AddToScheme, infrav1.AddToScheme,
	} {
		s.Expect(add(scheme)).To(Succeed())
	}
	c, err := client.New(w.RESTConfig(), client.Options{Scheme: scheme})
	s.Expect(err).NotTo(HaveOccurred())
	return cluster{ManagementCluster: w, client: c}
}

// vms lists the VMs of the simulated VCD as "ID name description".
func (s *environment) vms() []string {
	var vms []string
	for _, vm := range s.site.Simulator.State().VMs {
		vms = append(vms, vm.ID+" "+vm.Name+" "+vm.Description)
	}
	slices.Sort(vms)
	return vms
}

// expectNoObjects waits until a management cluster has no objects of the moved cluster, including its credentials.
func (s *environment) expectNoObjects(h cluster) {
	s.t.Helper()
	for _, list := range []client.ObjectList{
		&clusterv1.ClusterList{},
		&clusterv1.MachineList{},
		&infrav1.VCDClusterList{},
		&infrav1.VCDMachineList{},
		&infrav1.VCDMachineTemplateList{},
		&infrav1.VCDIdentityList{},
		&corev1.SecretList{},
		&addonsv1.ClusterResourceSetList{},
		&addonsv1.ClusterResourceSetBindingList{},
		&ipamv1.IPAddressClaimList{},
	} {
		s.Eventually(func() bool { return s.exists(h, list) }, timeout, "100ms").Should(BeFalse(),
			"%T of the moved cluster", list)
	}
}

func listLen(list client.ObjectList) int { return meta.LenList(list) }
