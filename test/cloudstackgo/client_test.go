// SPDX-License-Identifier: Apache-2.0

// Package cloudstackgo_test calls the simulated CloudStack with cloudstack-go, the official client of the CloudStack
// project. The simulator must accept its requests and signatures, and the client must accept the responses.
package cloudstackgo_test

import (
	"flag"
	"fmt"
	"net/http/httptest"
	"os"
	"testing"

	"github.com/apache/cloudstack-go/v2/cloudstack"
	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/cloudstack/cloudstacksim"
)

// A fixture is a simulated CloudStack with a network and a VM, and a client.
type fixture struct {
	*WithT
	*cloudstack.CloudStackClient

	sim     *cloudstacksim.Simulator
	network string
	vm      string
}

func newFixture(t *testing.T, key, secret, vpc string) *fixture {
	t.Helper()
	sim := cloudstacksim.New(cloudstacksim.Options{})
	server := httptest.NewServer(sim)
	t.Cleanup(server.Close)
	s := &fixture{
		WithT:            NewWithT(t),
		CloudStackClient: cloudstack.NewAsyncClient(server.URL+"/client/api", key, secret, false),
		sim:              sim,
	}
	t.Cleanup(func() {
		for _, command := range sim.Calls() {
			called[command] = true
		}
	})
	s.network = sim.AddNetwork("nodes", vpc)
	s.vm = sim.AddVM("node-10", []string{s.network}, []string{"10.1.1.10"})
	sim.AddAddresses("203.0.113.1", "203.0.113.2")
	return s
}

// called contains the commands that the tests have called.
var called = map[string]bool{"queryAsyncJobResult": true} // called by each asynchronous command

// TestMain checks that the tests called each command of the simulator, unless -run selects some tests.
func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	for _, command := range cloudstacksim.Commands() {
		if code == 0 && flag.Lookup("test.run").Value.String() == "" && !called[command] {
			fmt.Fprintln(os.Stderr, "cloudstack-go did not call", command)
			code = 1
		}
	}
	os.Exit(code)
}

func newUserFixture(t *testing.T, vpc string) *fixture {
	t.Helper()
	return newFixture(t, cloudstacksim.UserKey, cloudstacksim.UserSecret, vpc)
}

func TestReading(t *testing.T) {
	s := newUserFixture(t, "")

	capabilities, err := s.Configuration.ListCapabilities(s.Configuration.NewListCapabilitiesParams())
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(capabilities.Capabilities.Cloudstackversion).To(Equal("4.20.1.0"))
	zone, _, err := s.Zone.GetZoneByName("zone 1")
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(zone.Id).To(Equal(cloudstacksim.ZoneID))
	project, _, err := s.Project.GetProjectByName("shop")
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(project.Id).To(Equal(cloudstacksim.ProjectID))
	network, _, err := s.Network.GetNetworkByName("nodes")
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(network.Service).To(ContainElement(HaveField("Name", "Lb")))
	vm, _, err := s.VirtualMachine.GetVirtualMachineByID(s.vm)
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect([]string{vm.Name, vm.Zonename, vm.Serviceofferingname, vm.State, vm.Nic[0].Ipaddress, vm.Nic[0].Networkid}).To(Equal(
		[]string{"node-10", "zone 1", "m1.large", "Running", "10.1.1.10", s.network}))
	s.Expect(vm.Instancename).To(BeEmpty(), "only administrators see the instance name")
	events, err := s.Event.ListEvents(s.Event.NewListEventsParams())
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(events.Count).To(BeZero())
}

func TestSearchByNameMatchesSubstrings(t *testing.T) {
	s := newUserFixture(t, "")

	vm, _, err := s.VirtualMachine.GetVirtualMachineByName("node-1")

	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(vm.Name).To(Equal("node-10"), "the client returns a VM whose name only contains the requested name")
}

func TestALoadBalancer(t *testing.T) {
	s := newUserFixture(t, "")
	associate := s.Address.NewAssociateIpAddressParams()
	associate.SetNetworkid(s.network)
	ip, err := s.Address.AssociateIpAddress(associate)
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(ip.Ipaddress).To(Equal("203.0.113.1"))

	create := s.LoadBalancer.NewCreateLoadBalancerRuleParams("roundrobin", "a-tcp-80", 30080, 80)
	create.SetPublicipid(ip.Id)
	create.SetNetworkid(s.network)
	create.SetProtocol("tcp")
	create.SetOpenfirewall(false)
	rule, err := s.LoadBalancer.CreateLoadBalancerRule(create)
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect([]string{rule.Name, rule.Publicport, rule.Privateport, rule.Publicip}).To(Equal([]string{"a-tcp-80", "80", "30080", "203.0.113.1"}))
	create.SetName("another")
	create.SetProtocol("tcp-proxy")
	_, err = s.LoadBalancer.CreateLoadBalancerRule(create)
	s.Expect(err).To(MatchError(ContainSubstring("537")), "the port is in use")

	assign := s.LoadBalancer.NewAssignToLoadBalancerRuleParams(rule.Id)
	assign.SetVirtualmachineids([]string{s.vm})
	_, err = s.LoadBalancer.AssignToLoadBalancerRule(assign)
	s.Expect(err).NotTo(HaveOccurred())
	members, err := s.LoadBalancer.ListLoadBalancerRuleInstances(s.LoadBalancer.NewListLoadBalancerRuleInstancesParams(rule.Id))
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(members.LoadBalancerRuleInstances).To(HaveExactElements(HaveField("Id", s.vm)))

	update := s.LoadBalancer.NewUpdateLoadBalancerRuleParams(rule.Id)
	update.SetAlgorithm("source")
	updated, err := s.LoadBalancer.UpdateLoadBalancerRule(update)
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(updated.Algorithm).To(Equal("source"))
	rules := s.LoadBalancer.NewListLoadBalancerRulesParams()
	rules.SetKeyword("a-tcp")
	listed, err := s.LoadBalancer.ListLoadBalancerRules(rules)
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(listed.LoadBalancerRules).To(HaveExactElements(And(HaveField("Id", rule.Id), HaveField("Networkid", s.network))))

	remove := s.LoadBalancer.NewRemoveFromLoadBalancerRuleParams(rule.Id)
	remove.SetVirtualmachineids([]string{s.vm})
	_, err = s.LoadBalancer.RemoveFromLoadBalancerRule(remove)
	s.Expect(err).NotTo(HaveOccurred())
	_, err = s.LoadBalancer.DeleteLoadBalancerRule(s.LoadBalancer.NewDeleteLoadBalancerRuleParams(rule.Id))
	s.Expect(err).NotTo(HaveOccurred())
	_, err = s.Address.DisassociateIpAddress(s.Address.NewDisassociateIpAddressParams(ip.Id))
	s.Expect(err).NotTo(HaveOccurred())
	left, err := s.Address.ListPublicIpAddresses(s.Address.NewListPublicIpAddressesParams())
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(left.Count).To(BeZero())
}

func TestFirewallRules(t *testing.T) {
	s := newUserFixture(t, "")
	ip := s.sim.Allocate("203.0.113.1", s.network)
	create := s.Firewall.NewCreateFirewallRuleParams(ip, "tcp")
	create.SetStartport(80)
	create.SetEndport(80)
	create.SetCidrlist([]string{"192.0.2.0/24", "198.51.100.0/24"})

	rule, err := s.Firewall.CreateFirewallRule(create)

	s.Expect(err).NotTo(HaveOccurred())
	s.Expect([]any{rule.Startport, rule.Endport, rule.Cidrlist}).To(Equal([]any{80, 80, "192.0.2.0/24,198.51.100.0/24"}))
	list := s.Firewall.NewListFirewallRulesParams()
	list.SetIpaddressid(ip)
	listed, err := s.Firewall.ListFirewallRules(list)
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(listed.FirewallRules).To(HaveExactElements(HaveField("Ipaddressid", ip)))
	_, err = s.Firewall.DeleteFirewallRule(s.Firewall.NewDeleteFirewallRuleParams(rule.Id))
	s.Expect(err).NotTo(HaveOccurred())
}

func TestACLListOfATier(t *testing.T) {
	s := newUserFixture(t, cloudstacksim.VPCID)
	lists := s.NetworkACL.NewListNetworkACLListsParams()
	lists.SetNetworkid(s.network)
	list, err := s.NetworkACL.ListNetworkACLLists(lists)
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(list.NetworkACLLists).To(HaveLen(1))
	create := s.NetworkACL.NewCreateNetworkACLParams("tcp")
	create.SetAclid(list.NetworkACLLists[0].Id)
	create.SetAction("Allow")
	create.SetCidrlist([]string{"0.0.0.0/0"})
	create.SetStartport(80)
	create.SetEndport(80)
	create.SetReason("test")
	create.SetTraffictype("Ingress")

	rule, err := s.NetworkACL.CreateNetworkACL(create)

	s.Expect(err).NotTo(HaveOccurred())
	s.Expect([]string{rule.Startport, rule.Reason, rule.Aclid}).To(Equal([]string{"80", "test", list.NetworkACLLists[0].Id}))
	rules := s.NetworkACL.NewListNetworkACLsParams()
	rules.SetNetworkid(s.network)
	listed, err := s.NetworkACL.ListNetworkACLs(rules)
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(listed.Count).To(Equal(1))
	_, err = s.NetworkACL.DeleteNetworkACL(s.NetworkACL.NewDeleteNetworkACLParams(rule.Id))
	s.Expect(err).NotTo(HaveOccurred())
}

func TestStickiness(t *testing.T) {
	s := newUserFixture(t, "")
	rule := s.sim.Add(cloudstacksim.Rules, cloudstacksim.Object{"name": "a-tcp-80", "networkid": s.network})

	create := s.LoadBalancer.NewCreateLBStickinessPolicyParams(rule, "SourceBased", "mine")
	_, err := s.LoadBalancer.CreateLBStickinessPolicy(create)
	s.Expect(err).NotTo(HaveOccurred())
	policies := s.LoadBalancer.NewListLBStickinessPoliciesParams()
	policies.SetLbruleid(rule)
	listed, err := s.LoadBalancer.ListLBStickinessPolicies(policies)
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(listed.Count).To(Equal(1), "cloudstack-go decodes the list from a different key than CloudStack sends")
	id := fmt.Sprint(s.sim.Objects(cloudstacksim.Policies)[0]["id"])
	_, err = s.LoadBalancer.DeleteLBStickinessPolicy(s.LoadBalancer.NewDeleteLBStickinessPolicyParams(id))
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(s.sim.Objects(cloudstacksim.Policies)).To(BeEmpty())
}

func TestPortForwardsAndVPNsOfAnAddress(t *testing.T) {
	s := newUserFixture(t, "")
	ip := s.sim.Allocate("203.0.113.1", s.network)
	s.sim.Add(cloudstacksim.PortForwards, cloudstacksim.Object{"ipaddressid": ip, "publicport": "22", "networkid": s.network})
	s.sim.Add(cloudstacksim.VPNs, cloudstacksim.Object{"publicipid": ip, "publicip": "203.0.113.1", "state": "Running"})

	forwards := s.Firewall.NewListPortForwardingRulesParams()
	forwards.SetIpaddressid(ip)
	listed, err := s.Firewall.ListPortForwardingRules(forwards)
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(listed.PortForwardingRules).To(HaveExactElements(HaveField("Ipaddressid", ip)))
	vpns := s.VPN.NewListRemoteAccessVpnsParams()
	vpns.SetPublicipid(ip)
	found, err := s.VPN.ListRemoteAccessVpns(vpns)
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(found.RemoteAccessVpns).To(HaveExactElements(HaveField("Publicipid", ip)))
}

func TestTags(t *testing.T) {
	s := newUserFixture(t, "")
	ip := s.sim.Allocate("203.0.113.1", s.network)
	tag := map[string]string{"kubernetes-load-balancer": "cluster=a uid=b"}

	_, err := s.Resourcetags.CreateTags(s.Resourcetags.NewCreateTagsParams([]string{ip}, "PublicIpAddress", tag))

	s.Expect(err).NotTo(HaveOccurred())
	address, _, err := s.Address.GetPublicIpAddressByID(ip)
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(address.Tags).To(HaveExactElements(HaveField("Value", "cluster=a uid=b")))
	remove := s.Resourcetags.NewDeleteTagsParams([]string{ip}, "PublicIpAddress")
	remove.SetTags(tag)
	_, err = s.Resourcetags.DeleteTags(remove)
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(s.sim.Objects(cloudstacksim.Addresses)[0]).NotTo(HaveKey("tags"))
}

// TestStartupRequestsOfTheOriginalProvider shows why the older provider requires a root administrator: for a call at startup.
func TestStartupRequestsOfTheOriginalProvider(t *testing.T) {
	s := newUserFixture(t, "")
	_, err := s.Management.ListManagementServersMetrics(s.Management.NewListManagementServersMetricsParams())
	s.Expect(err).To(MatchError(ContainSubstring("432")))

	root := newFixture(t, cloudstacksim.AdminKey, cloudstacksim.AdminSecret, "")
	found, err := root.Management.ListManagementServersMetrics(root.Management.NewListManagementServersMetricsParams())
	root.Expect(err).NotTo(HaveOccurred())
	root.Expect(found.ManagementServersMetrics).To(HaveExactElements(HaveField("Version", "4.20.1.0")))
}

func TestWrongSecret(t *testing.T) {
	s := newFixture(t, cloudstacksim.UserKey, "wrong", "")

	_, err := s.Zone.ListZones(s.Zone.NewListZonesParams())

	s.Expect(err).To(MatchError(ContainSubstring("401")))
}
