// SPDX-License-Identifier: Apache-2.0

package vcd_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"

	cpivcd "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/vcd"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/ccmconfig/vcdconfig"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/vcdsimtest"
)

// newClusterAs makes load balancers, and source ranges, as a user with these rights.
func newClusterAs(t *testing.T, rights []string, model vcdsim.Model, gateway vcdconfig.Gateway) *cluster {
	t.Helper()
	model.Orgs[1].VDCs[0].Fleet = vcdsim.Fleet{VApps: 1, VMsPerVApp: 1}
	roles := model.Orgs[1].Roles
	i := slices.IndexFunc(roles, func(r vcdsim.Role) bool { return r.Name == vcdsim.RoleCloudProvider })
	roles[i].Rights = rights
	c := &cluster{
		WithT:        NewWithT(t),
		sim:          vcdsimtest.Start(t, vcdsim.Config{Model: model}),
		client:       fake.NewClientset(),
		events:       record.NewFakeRecorder(100),
		sourceRanges: true,
	}
	c.configure(t, gateway)
	c.node("a", "192.168.100.11")
	return c
}

// A life is of one Service, with what it takes.
type life struct {
	model   func() vcdsim.Model
	gateway vcdconfig.Gateway
	service func(*corev1.Service)
}

// lives take all that Services can ask for.
func lives() map[string]life {
	nodes := network("", "nodes")
	plain := func(*corev1.Service) {}
	return map[string]life{
		"an address of the gateway": {vcdsim.K8sTenant, nodes, plain},
		"one-arm mode":              {vcdsim.K8sTenant, oneArm(), plain},
		"IP Spaces":                 {vcdsim.IPSpaces, nodes, plain},
		"source ranges": {
			vcdsim.K8sTenant,
			nodes,
			func(s *corev1.Service) {
				s.Spec.LoadBalancerSourceRanges = []string{"192.0.2.0/24"}
			},
		},
		"a certificate of the library": {
			vcdsim.CloudProvider,
			nodes,
			func(s *corev1.Service) {
				s.Spec.Ports = s.Spec.Ports[:1]
				s.Spec.Ports[0].AppProtocol = ptr.To("https")
				metav1.SetMetaDataAnnotation(&s.ObjectMeta, prefix+"avi-ssl-cert-alias", "tls")
			},
		},
		"a certificate of a Secret": {
			vcdsim.K8sTenant,
			nodes,
			func(s *corev1.Service) {
				s.Spec.Ports = s.Spec.Ports[:1]
				s.Spec.Ports[0].AppProtocol = ptr.To("https")
				metav1.SetMetaDataAnnotation(&s.ObjectMeta, prefix+"tls-secret", "shop-tls")
			},
		},
	}
}

// live makes, changes and removes the load balancer of a Service, and returns what happened, in words.
func (l life) live(t *testing.T, rights []string) string {
	t.Helper()
	c := newClusterAs(t, rights, l.model(), l.gateway)
	chain, key := certificate(t)
	c.Expect(c.client.Tracker().Add(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "shop-tls"},
		Data:       map[string][]byte{corev1.TLSCertKey: chain, corev1.TLSPrivateKeyKey: key},
	})).To(Succeed())
	s := c.service("shop", l.service)

	status, err := c.them.EnsureLoadBalancer(t.Context(), "", s, nil)
	if err != nil {
		return "refused"
	}
	s.Status.LoadBalancer = *status
	now, err := c.client.CoreV1().Services("shop").Get(t.Context(), "web", metav1.GetOptions{})
	c.Expect(err).NotTo(HaveOccurred())
	s.Annotations = now.Annotations
	c.node("b", "192.168.100.12")
	s.Spec.Ports[0].Port += 1000
	c.Expect(c.services.Update(s.DeepCopy())).To(Succeed())
	if _, err := c.them.EnsureLoadBalancer(t.Context(), "", s, nil); err != nil {
		return "not changed"
	}
	made := c.ours("uid-1")
	made["IP sets of the cluster"] = len(c.sets())
	made["events"] = len(c.events.Events)
	if err := c.them.EnsureLoadBalancerDeleted(t.Context(), "", s); err != nil {
		return "not removed"
	}
	left := len(c.sets())
	for _, n := range c.ours("uid-1") {
		left += n
	}
	machines := cpivcd.NewMachines(cpivcd.MachineOptions{
		Session:   c.sessions.Session,
		ClusterID: "c1",
		VDCs:      []string{"acme-vdc"},
		VApps:     []string{"acme-vdc-vapp-000"},
	})
	all, err := machines.Snapshot(t.Context(), 0)
	var kinds []string
	for _, m := range all {
		kinds = append(kinds, m.Type)
	}
	return fmt.Sprint(made, " left ", left, " machines ", kinds, " ", err != nil)
}

func TestTheDocumentedRoleIsEnough(t *testing.T) {
	rights := vcdsimtest.DocumentedRole(t, "../../docs/security/permissions.md", "ccm")
	everything := append(vcdsim.RightsOfCloudProvider(), rights...)
	for name, l := range lives() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)

			happened := l.live(t, rights)

			g.Expect(happened).To(Equal(l.live(t, everything)))
			g.Expect(happened).To(And(ContainSubstring("events:0"), ContainSubstring("left 0")))
			g.Expect(happened).NotTo(ContainSubstring("machines []"))
		})
	}
}

// unseen are the rights whose absence changes nothing here, each with the reason.
var unseen = map[string]string{
	"API Tokens: Manage":                           "a person's, before the program starts",
	"Organization vDC Compute Policy: View":        "VMs of a fleet have no sizing policy",
	"Organization vDC Gateway: View Load Balancer": "comes with Configure",
	"Organization vDC Gateway: View NAT":           "comes with Configure",
	"Organization vDC Gateway: View Firewall":      "comes with Configure",
	"Certificate Library: View":                    "comes with Manage",
	"Private IP Spaces: View":                      "the IP Space is a public one",
}

func TestEveryDocumentedRightIsNeeded(t *testing.T) {
	rights := vcdsimtest.DocumentedRole(t, "../../docs/security/permissions.md", "ccm")
	whole := map[string]string{}
	for name, l := range lives() {
		whole[name] = l.live(t, rights)
	}
	for _, right := range slices.DeleteFunc(slices.Clone(rights), func(r string) bool { return unseen[r] != "" }) {
		t.Run(right, func(t *testing.T) {
			t.Parallel()
			fewer := slices.DeleteFunc(slices.Clone(rights), func(r string) bool { return r == right })
			without := map[string]string{}
			for name, l := range lives() {
				without[name] = l.live(t, fewer)
			}

			NewWithT(t).Expect(maps.Equal(without, whole)).To(BeFalse(), "nothing goes another way without it")
		})
	}
}
