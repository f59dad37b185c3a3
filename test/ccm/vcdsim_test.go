// SPDX-License-Identifier: Apache-2.0

package ccm

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/addons"
	client "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// Names in the simulated VCD. It has one edge gateway for each way to expose a load balancer.
const (
	twoArm   = ""       // the default: virtual services on addresses of the gateway
	oneArm   = "arm"    // virtual services on internal addresses, behind DNAT rules
	ipSpaces = "spaces" // virtual services on addresses that are allocated from an IP Space

	vcdOrg  = "acme"
	vcdVDC  = "acme-vdc"
	vcdVApp = "acme-vdc-vapp-000"
	// certificate is the alias of a certificate in the library.
	certificate = "web"
)

// gatewayNames returns the names of all gateways as in the annotation of Services.
func gatewayNames() []string { return []string{twoArm, oneArm, ipSpaces} }

// A vcd is a cloud: a simulated VMware Cloud Director.
type vcd struct {
	*vcdsim.Simulator

	secrets map[string]string // files of the Secret
	before  map[string]bool   // documents that existed initially

	mu   sync.Mutex
	seen []request
}

// A vcdOption changes a simulator before it starts.
type vcdOption func(*vcdsim.Config)

// brisk is a fast profile in which running tasks can still be observed.
var brisk = vcdsim.Profile{Name: "brisk", Scale: 0.02}

// only returns the settings for one gateway and a drift check every hour.
func only(gateway string) settings { return onlyEvery(gateway, "1h") }

func onlyEvery(gateway, interval string) settings {
	s := settings{"loadbalancer.gateways": nil, "loadbalancer.driftInterval": interval}
	switch gateway {
	case oneArm:
		s["loadbalancer.network"] = "arm"
		s["loadbalancer.oneArm.startIP"] = "192.168.8.2"
		s["loadbalancer.oneArm.endIP"] = "192.168.11.250"
	case ipSpaces:
		s["loadbalancer.network"] = "spaces"
	}
	return s
}

// instant is an option for tests that count requests and do not depend on the duration of tasks.
func instant(c *vcdsim.Config) { c.Profile = vcdsim.Instant }

// newVCD starts a simulator with n machines. The machines depend only on n.
func newVCD(n int, options ...vcdOption) (*vcd, error) {
	v := &vcd{secrets: map[string]string{"username": "ccm", "password": "password"}}
	config := vcdsim.Config{Model: vcdModel(n), Profile: brisk, Seed: 5, Observe: v.observe}
	for _, o := range options {
		o(&config)
	}
	var err error
	if v.Simulator, err = vcdsim.New(config); err != nil {
		return nil, err
	}
	v.before = map[string]bool{}
	for _, name := range v.everything() {
		v.before[name] = true
	}
	return v, v.Start()
}

func vcdModel(n int) vcdsim.Model {
	m := vcdsim.K8sTenant()
	m.ExternalNetworks = append(m.ExternalNetworks, vcdsim.ExternalNetwork{
		Name:        "spaces",
		Description: "To outside, with IP Spaces",
		BackingName: "tier0-spaces",
		UsesSpaces:  true,
	})
	space := vcdsim.PublicSpace("public", "spaces")
	space.RangeQuota = -1
	m.IPSpaces = []vcdsim.IPSpace{space}
	m.ServiceEngineGroups[0].MaxService = 1000
	m.Orgs[1].Certificates = []vcdsim.Certificate{{
		Alias: certificate,
		PEM:   "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n",
	}}
	m.ExternalNetworks[0].Subnets = []vcdsim.ExternalSubnet{{
		Gateway: outside,
		Pool:    []vcdsim.Range{addresses("100.64.0.10", "100.64.99.250")},
	}}
	vdc := &m.Orgs[1].VDCs[0]
	arm := vdc.EdgeGateways[0]
	spaces := vdc.EdgeGateways[0]
	arm.Name = "arm-gateway"
	spaces.Name = "spaces-gateway"
	vdc.EdgeGateways[0].Uplinks = uplink("100.64.1.1", "100.64.3.254")
	arm.Uplinks = uplink("100.64.11.1", "100.64.13.254")
	spaces.Uplinks = []vcdsim.Uplink{{Network: "spaces"}}
	vdc.EdgeGateways = append(vdc.EdgeGateways, arm, spaces)
	vdc.Networks = append(vdc.Networks,
		vcdsim.Network{
			Name:    "arm",
			Type:    vcdsim.Routed,
			Edge:    arm.Name,
			Gateway: netip.MustParsePrefix("192.168.101.1/24"),
		},
		vcdsim.Network{
			Name:    "spaces",
			Type:    vcdsim.Routed,
			Edge:    spaces.Name,
			Gateway: netip.MustParsePrefix("192.168.102.1/24"),
		},
	)
	vdc.Networks[0].Gateway = netip.MustParsePrefix("10.40.0.1/16")
	vdc.Networks[0].StaticPool = []vcdsim.Range{addresses("10.40.1.1", "10.40.63.255")}
	vdc.Networks[0].DHCPPool = nil
	vdc.Fleet = vcdsim.Fleet{VApps: 1, VMsPerVApp: n}
	return m
}

// outside is the external network of the gateways.
var outside = netip.MustParsePrefix("100.64.0.1/16")

// uplink returns an uplink with a range of addresses. The first one is the primary address of the gateway.
func uplink(from, to string) []vcdsim.Uplink {
	all := addresses(from, to)
	return []vcdsim.Uplink{{
		Network: "internet",
		Subnets: []vcdsim.UplinkSubnet{{Gateway: outside, Primary: all.From, Addresses: []vcdsim.Range{all}}},
	}}
}

func addresses(from, to string) vcdsim.Range {
	return vcdsim.Range{From: netip.MustParseAddr(from), To: netip.MustParseAddr(to)}
}

// files implements program.
func (v *vcd) files(s settings) (string, map[string]string, error) {
	all := settings{
		"vcd.host":                   v.URL(),
		"vcd.org":                    vcdOrg,
		"vcd.vdc":                    vcdVDC,
		"vcd.caBundle":               string(v.CA()),
		"vAppName":                   vcdVApp,
		"loadbalancer.network":       "nodes",
		"loadbalancer.driftInterval": "10s",
		"loadbalancer.gateways": []any{
			map[string]any{
				"name":    oneArm,
				"network": "arm",
				"oneArm":  map[string]any{"startIP": "192.168.8.2", "endIP": "192.168.11.250"},
			},
			map[string]any{"name": ipSpaces, "network": "spaces"},
		},
		"nodes.maxAge":          "1s",
		"vcd.requestsPerSecond": 500,
		"vcd.burst":             500,
	}
	maps.Copy(all, s)
	tree := map[string]any{}
	for path, value := range all {
		at := tree
		words := strings.Split(path, ".")
		for _, word := range words[:len(words)-1] {
			below, _ := at[word].(map[string]any)
			if below == nil {
				below = map[string]any{}
				at[word] = below
			}
			at = below
		}
		if value != nil {
			at[words[len(words)-1]] = value
		}
	}
	raw, err := yaml.Marshal(tree)
	if err != nil {
		return "", nil, fmt.Errorf("writing the configuration: %w", err)
	}
	const config = "vcloud-ccm-config.yaml"
	files := map[string]string{config: string(raw)}
	for name, content := range v.secrets {
		files["basic-auth/"+name] = content
	}
	return config, files, nil
}

// secret implements program.
func (v *vcd) secret() map[string]string { return nil }

// manifest implements program.
func (v *vcd) manifest() addons.Cloud { return addons.VCD() }

// lacks implements program.
func (v *vcd) lacks() map[capability]string { return nil }

// deleteFrontends implements loadBalancing.
func (v *vcd) deleteFrontends(t *testing.T, uid string) {
	t.Helper()
	v.deleteByHand(t, uid, servicesPath, natPath, profilesPath)
}

// addressAnnotation implements loadBalancing.
func (v *vcd) addressAnnotation() string { return addressAnnotation }

// machines implements compute.
func (v *vcd) machines() []machine {
	var out []machine
	for _, vm := range v.State().VMs {
		m := machine{Name: vm.Name, ProviderID: "vmware-cloud-director://" + vcdsim.URN("vm", vm.ID)}
		for _, nic := range vm.NICs {
			if a, err := netip.ParseAddr(nic.Address); err == nil {
				m.Addresses = append(m.Addresses, a)
			}
		}
		out = append(out, m)
	}
	slices.SortFunc(out, func(a, b machine) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

func (v *vcd) powerOff(name string) { v.Edit(func(e *vcdsim.Editor) { e.PowerOff(e.VM(name)) }) }

func (v *vcd) powerOn(name string) { v.Edit(func(e *vcdsim.Editor) { e.PowerOn(e.VM(name)) }) }

// remove powers off and deletes a VM, as its owner does. VCD records the deletion in its task log.
func (v *vcd) remove(name string) {
	ctx := context.Background()
	id := ""
	v.Edit(func(e *vcdsim.Editor) { id = "urn:vcloud:vm:" + e.VM(name).ID })
	pool := client.NewPool(client.PoolOptions{TaskPoll: poll})
	defer func() { _ = pool.Close(ctx) }()
	session, err := pool.Session(ctx, client.Config{
		Site:        v.URL(),
		Org:         vcdOrg,
		CABundle:    v.CA(),
		Credentials: client.Credentials{Username: "admin", Password: "password"},
	})
	if err != nil {
		panic(err)
	}
	for _, request := range []func(context.Context, string) (client.Task, error){
		session.VMs.PowerOff,
		session.VMs.DeleteVM,
	} {
		task, err := request(ctx, id)
		if err != nil {
			panic(err)
		}
		ended := make(chan struct{})
		session.Tasks.Follow(name, task, func() { close(ended) })
		<-ended
	}
}

func (v *vcd) readdress(name string, to netip.Addr) {
	v.Edit(func(e *vcdsim.Editor) { e.VM(name).NICs[0].Address = to.String() })
}

// observe records the request of an exchange.
func (v *vcd) observe(e vcdsim.Exchange) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.seen = append(v.seen, request{Operation: e.Operation, Kind: kindOf(e.Method, e.URI)})
}

func kindOf(method, uri string) requestKind {
	switch {
	case strings.Contains(uri, "/session") || strings.HasPrefix(uri, "/oauth/") ||
		strings.HasPrefix(uri, "/api/versions"):
		return loggingIn
	case strings.HasPrefix(uri, "/api/task") || strings.HasPrefix(uri, "/api/query?") &&
		strings.Contains(uri, "type=task"):
		return waiting
	case method == "GET":
		return reading
	}
	return writing
}

// requests implements wire.
func (v *vcd) requests() []request {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.seen)
}

func (v *vcd) forget() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.seen = nil
}

func (v *vcd) close() error { return v.Close() }

// hold blocks all requests of an operation until release is called.
func (v *vcd) hold(operation string) (release func()) {
	held := make(chan struct{})
	v.SetGate(func(ctx context.Context, m vcdsim.Moment, r vcdsim.Request) bool {
		if m == vcdsim.Arrived && r.Operation == operation {
			select {
			case <-held:
			case <-ctx.Done():
			}
		}
		return true
	})
	return sync.OnceFunc(func() { close(held) })
}

// faults returns the fault injection of the simulator.
func (v *vcd) faults() faults { return vcdFaults{v.Simulator} }

type vcdFaults struct{ *vcdsim.Simulator }

var vcdFault = map[fault]vcdsim.Fault{
	droppedBefore: {DropBefore: true},
	droppedAfter:  {DropAfter: true},
	serverError:   {Status: 500},
	unavailable:   {Status: 503, Header: map[string]string{"Retry-After": "1"}},
	busy:          {Busy: vcdsim.BusyTenant},
	taskFailed:    {FailTask: true, Message: "The simulator fails this task."},
	unauthorized:  {EndSession: true},
}

func (f vcdFaults) add(kind fault, operation string, times int) {
	rule := vcdFault[kind]
	rule.Operation = operation
	rule.Count = times
	f.Faults().Add(rule)
}

func (f vcdFaults) pending() []string {
	var out []string
	for _, rule := range f.Faults().List() {
		out = append(out, fmt.Sprintf("%+v", rule))
	}
	return out
}

func (f vcdFaults) clear() { f.Faults().Clear() }
