// SPDX-License-Identifier: Apache-2.0

package ccm

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/vmware/govmomi"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/addons"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/vsphere/vspheresim"
)

// A vSphere is a cloud: a vCenter in govmomi's simulator.
type vSphere struct {
	model  *simulator.Model
	server *simulator.Server
	client *govmomi.Client
}

// newVSphere starts a vCenter with n machines in one zone and region.
func newVSphere(ctx context.Context, n int) (*vSphere, error) {
	v := &vSphere{model: simulator.VPX()}
	v.model.Machine = 2 // per resource pool
	if err := v.model.Create(); err != nil {
		return nil, fmt.Errorf("creating a vCenter: %w", err)
	}
	v.model.Service.TLS = new(tls.Config)
	v.model.Service.RegisterEndpoints = true
	v.server = v.model.Service.NewServer()
	v.boot(n)
	var err error
	if v.client, err = govmomi.NewClient(ctx, v.server.URL, true); err != nil {
		return nil, errors.Join(err, v.close())
	}
	return v, v.permit(ctx)
}

// boot creates VMs up to a total of n, and makes VMware Tools of each VM report a name and an address.
func (v *vSphere) boot(n int) {
	vspheresim.Multiply(v.model, n)
	for i, vm := range vspheresim.VMs(v.model) {
		name := fmt.Sprintf("vs-%03d", i)
		vm.Name = name
		vm.Config.Uuid = uuid.NewString()
		vspheresim.Boot(&vm.VirtualMachine, name, fmt.Sprintf("10.40.%d.%d", 1+i/250, 1+i%250))
	}
}

// permit grants the user read access to everything, and assigns a zone and a region to the datacenter.
func (v *vSphere) permit(ctx context.Context) error {
	user := v.server.URL.User
	datacenter := v.model.Map().Any("Datacenter")
	return errors.Join(
		vspheresim.Permit(ctx, v.client, user.Username(), true),
		vspheresim.Tag(ctx, v.client, user, "k8s-zone", "here", datacenter),
		vspheresim.Tag(ctx, v.client, user, "k8s-region", "here", datacenter),
	)
}

// files implements program.
func (v *vSphere) files(s settings) (string, map[string]string, error) {
	const config = "vsphere.conf"
	return config, map[string]string{config: fmt.Sprintf(`[Global]
insecure-flag = true
secret-name = vsphere-cloud-secret
secret-namespace = kube-system
[VirtualCenter "%s"]
port = %s
[Labels]
zone = k8s-zone
region = k8s-region
[Nodes]
max-age = %s
`, v.server.URL.Hostname(), v.server.URL.Port(), s.or("nodes.maxAge", "1s"))}, nil
}

// secret implements program.
func (v *vSphere) secret() map[string]string {
	host := v.server.URL.Hostname()
	password, _ := v.server.URL.User.Password()
	return map[string]string{host + ".username": v.server.URL.User.Username(), host + ".password": password}
}

// manifest implements program.
func (*vSphere) manifest() addons.Cloud { return addons.VSphere() }

// lacks implements program.
func (*vSphere) lacks() map[capability]string {
	const reason = "vSphere has none"
	return map[capability]string{balancers: reason, healthChecks: reason}
}

// vms returns the VMs by name.
func (v *vSphere) vms() map[string]*simulator.VirtualMachine {
	out := map[string]*simulator.VirtualMachine{}
	for _, vm := range vspheresim.VMs(v.model) {
		out[vm.Name] = vm
	}
	return out
}

// machines implements compute.
func (v *vSphere) machines() []machine {
	var out []machine
	for name, vm := range v.vms() {
		out = append(out, machine{
			Name:       name,
			ProviderID: "vsphere://" + vm.Config.Uuid,
			Addresses:  []netip.Addr{netip.MustParseAddr(vm.Guest.Net[0].IpAddress[0])},
		})
	}
	slices.SortFunc(out, func(a, b machine) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// change changes a VM.
func (v *vSphere) change(name string, change func(*mo.VirtualMachine)) {
	vm := v.vms()[name]
	v.model.Map().WithLock(v.model.Service.Context, vm, func() { change(&vm.VirtualMachine) })
}

func (v *vSphere) powerOff(name string) {
	v.change(name, func(vm *mo.VirtualMachine) {
		vm.Runtime.PowerState = types.VirtualMachinePowerStatePoweredOff
	})
}

func (v *vSphere) powerOn(name string) {
	v.change(name, func(vm *mo.VirtualMachine) {
		vm.Runtime.PowerState = types.VirtualMachinePowerStatePoweredOn
	})
}

func (v *vSphere) remove(name string) {
	v.powerOff(name)
	ctx := context.Background()
	task, err := object.NewVirtualMachine(v.client.Client, v.vms()[name].Reference()).Destroy(ctx)
	if err == nil {
		err = task.Wait(ctx)
	}
	if err != nil {
		panic(err)
	}
}

func (v *vSphere) readdress(name string, to netip.Addr) {
	v.change(name, func(vm *mo.VirtualMachine) { vm.Guest.Net[0].IpAddress = []string{to.String()} })
}

// This cloud has no load balancers.
func (*vSphere) frontends(string) []frontend        { return nil }
func (*vSphere) leftovers(string) []string          { return nil }
func (*vSphere) snapshot(string) []string           { return nil }
func (*vSphere) deleteFrontends(*testing.T, string) {}
func (*vSphere) addressAnnotation() string          { return "" }

// requests implements wire. It returns nothing: tests in cpi/vsphere count the requests.
func (*vSphere) requests() []request { return nil }

func (*vSphere) forget() {}

func (v *vSphere) close() error {
	v.server.Close()
	v.model.Remove()
	return nil
}
