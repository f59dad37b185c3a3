// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/compute"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/machines"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/ovf"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/vdcs"
)

// createFleets creates the fleets of the model.
func createFleets(s *cloud.Cloud) {
	for o := range s.Store.Model.Orgs {
		org := &s.Store.Model.Orgs[o]
		for v := range org.VDCs {
			createFleet(s, org, &org.VDCs[v])
		}
	}
}

// createFleet creates the fleet of a VDC.
func createFleet(s *cloud.Cloud, org *store.Org, vdc *store.VDC) {
	f := vdc.Fleet
	tpl, source := firstTemplate(org)
	if f.VApps == 0 || source == nil {
		return
	}
	addresses := poolAddresses(vdc)
	for i := range f.VApps {
		v := &store.VApp{
			ID:       s.IDs.Next("vapp"),
			Name:     fmt.Sprintf("%s-vapp-%03d", vdc.Name, i),
			OrgID:    org.ID,
			VDCID:    vdc.ID,
			Status:   store.Resolved,
			Deployed: !f.PoweredOff,
			Created:  s.Clock.Now(),
			Metadata: map[string]store.Metadata{},
			Lease:    org.NewLease(),
		}
		if u := slices.IndexFunc(org.Users, func(u store.User) bool { return f.Owner == "" || u.Name == f.Owner }); u >= 0 {
			v.OwnerID = org.Users[u].ID
		}
		if len(vdc.Networks) > 0 {
			n := &vdc.Networks[0]
			v.Networks = []store.VAppNetwork{{ID: s.IDs.Next("network"), Name: n.Name, ParentID: n.ID, FenceMode: "bridged"}}
		}
		s.Store.VApps[v.ID] = v
		for j := range f.VMsPerVApp {
			vm := fleetVM(s, vdc, v, tpl, source, j)
			if len(vm.NICs) > 0 {
				vm.NICs[0].Address = addresses()
			}
			s.Store.AddVM(vm)
		}
		machines.LeasesOf(s).DeployedChanged(v)
	}
}

func firstTemplate(org *store.Org) (*store.Template, *store.TemplateVM) {
	for c := range org.Catalogs {
		for t := range org.Catalogs[c].Templates {
			if tpl := &org.Catalogs[c].Templates[t]; len(tpl.VMs) > 0 {
				return tpl, &tpl.VMs[0]
			}
		}
	}
	return nil, nil
}

// poolAddresses returns a function that returns the addresses of the first network's static pools one by one, then "".
func poolAddresses(vdc *store.VDC) func() string {
	if len(vdc.Networks) == 0 {
		return func() string { return "" }
	}
	pools := vdc.Networks[0].StaticPool
	var at netip.Addr
	return func() string {
		if len(pools) == 0 {
			return ""
		}
		if at = at.Next(); !at.IsValid() || !pools[0].Contains(at) {
			at = pools[0].From
		}
		if at == pools[0].To {
			pools = pools[1:]
		}
		return at.String()
	}
}

func fleetVM(s *cloud.Cloud, vdc *store.VDC, v *store.VApp, tpl *store.Template, t *store.TemplateVM, number int) *store.VM {
	name := fmt.Sprintf("%s-%03d", v.Name, number)
	vm := &store.VM{
		ID:                s.IDs.Next("vm"),
		Name:              name,
		VAppID:            v.ID,
		Status:            store.PoweredOn,
		Deployed:          true,
		Created:           s.Clock.Now(),
		OS:                t.OS,
		HardwareVersion:   vdcs.DefaultHardware,
		CPUs:              t.CPUs,
		CoresPerSocket:    1,
		MemoryMiB:         t.MemoryMiB,
		ExtraConfig:       map[string]string{},
		Metadata:          map[string]store.Metadata{},
		Properties:        map[string]store.Property{},
		Customization:     store.Customization{ComputerName: ovf.ComputerName(name)},
		StorageProfileID:  vdc.DefaultProfile(),
		SizingPolicyID:    s.Store.DefaultSizing(vdc),
		TemplateID:        tpl.ID,
		TemplateName:      tpl.Name,
		KubernetesVersion: tpl.KubernetesVersion,
		Boot:              store.Boot{Generation: 1, Up: true, Hostname: ovf.ComputerName(name)},
	}
	if vdc.Fleet.PoweredOff {
		vm.Status = store.PoweredOff
		vm.Deployed = false
		vm.Boot = store.Boot{}
	}
	vm.Disks = machines.TemplateDisks(t, vm.StorageProfileID)
	if len(v.Networks) > 0 {
		vm.NICs = []store.NIC{{
			Network:   v.Networks[0].Name,
			MAC:       s.IDs.MAC(),
			Mode:      store.ModePool,
			Adapter:   compute.DefaultAdapter,
			Connected: true,
		}}
	}
	return vm
}

// Large returns K8sTenant with 10,000 VMs in 100 vApps, on a larger network.
func Large() store.Model {
	m := K8sTenant()
	vdc := &m.Orgs[1].VDCs[0]
	vdc.Fleet = store.Fleet{VApps: 100, VMsPerVApp: 100, Owner: "capvcd"}
	vdc.Networks[0].Gateway = netip.MustParsePrefix("10.40.0.1/16")
	vdc.Networks[0].StaticPool = []store.Range{addresses("10.40.1.0", "10.40.63.255")}
	vdc.Networks[0].DHCPPool = []store.Range{addresses("10.40.64.0", "10.40.95.255")}
	return m
}
