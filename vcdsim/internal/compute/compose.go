// SPDX-License-Identifier: Apache-2.0

package compute

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/fiql"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/machines"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/ovf"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/vdcs"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

// NewVApp reads the elements that compose and instantiate requests share, and returns the new vApp. The vApp is
// UNRESOLVED until its task ends. The caller adds it to the store.
func NewVApp(r *api.Request, org *store.Org, vdc *store.VDC, tree *xmltree.Node) (*store.VApp, error) {
	name := tree.Attr("name")
	if err := api.CheckName("vApp", name); err != nil {
		return nil, err
	}
	for _, v := range r.Cloud.Store.VApps {
		if v.VDCID == vdc.ID && v.Name == name {
			return nil, store.DuplicateName(name)
		}
	}
	v := &store.VApp{
		ID:          r.Cloud.IDs.Next("vapp"),
		Name:        name,
		Description: tree.Str("Description"),
		OrgID:       org.ID,
		VDCID:       vdc.ID,
		OwnerID:     r.Session.UserID,
		Status:      store.Unresolved,
		Created:     r.Cloud.Clock.Now(),
		Metadata:    map[string]store.Metadata{},
		Lease:       org.NewLease(),
	}
	if section := tree.At("InstantiationParams", "LeaseSettingsSection"); section != nil {
		v.Lease = readLease(section, v.Lease, org)
	}
	networks, err := readNetworks(r.Cloud.Store, r.Cloud.IDs, vdc, tree.At("InstantiationParams", "NetworkConfigSection"), nil)
	if err != nil {
		return nil, err
	}
	v.Networks = networks
	return v, nil
}

func readLease(section *xmltree.Node, lease store.Lease, org *store.Org) store.Lease {
	if n, ok := section.Int("DeploymentLeaseInSeconds"); ok {
		lease.Runtime = machines.Capped(machines.Seconds(n), time.Duration(org.RuntimeLease))
	}
	if n, ok := section.Int("StorageLeaseInSeconds"); ok {
		lease.Storage = machines.Capped(machines.Seconds(n), time.Duration(org.StorageLease))
	}
	return lease
}

// newVMs reads the items of a compose request and returns the new VMs. The caller adds them to the store once the whole
// request is valid.
func newVMs(r *api.Request, vdc *store.VDC, v *store.VApp, tree *xmltree.Node) ([]*store.VM, error) {
	var out []*store.VM
	for _, item := range append(tree.All("SourcedItem"), tree.All("CreateItem")...) {
		vms, err := newVMsFromItem(r, vdc, v, item)
		if err != nil {
			return nil, err
		}
		out = append(out, vms...)
	}
	return out, checkNewVMs(r.Cloud, vdc, v, out)
}

// checkNewVMs refuses VMs whose names are not unique in their vApp, or that would exceed a limit.
func checkNewVMs(c *cloud.Cloud, vdc *store.VDC, v *store.VApp, vms []*store.VM) error {
	if err := checkNewNames(c.Store, v, vms); err != nil {
		return err
	}
	if err := checkVAppSize(c.Store, &c.Assume, v, len(vms)); err != nil {
		return err
	}
	return CheckVMQuota(c, vdc, len(vms))
}

// checkNewNames refuses VMs whose names are not unique in their vApp.
func checkNewNames(st *store.Store, v *store.VApp, vms []*store.VM) error {
	for i, vm := range vms {
		same := func(o *store.VM) bool { return o.Name == vm.Name }
		if slices.ContainsFunc(vms[:i], same) || slices.ContainsFunc(st.VMsOf(v.ID), same) {
			return store.DuplicateName(vm.Name)
		}
	}
	return nil
}

// checkVAppSize refuses VMs that would exceed the maximum number of VMs per vApp.
func checkVAppSize(st *store.Store, assume *cloud.Assumptions, v *store.VApp, more int) error {
	if limit := assume.MaxVMsPerVApp; more > 0 && limit > 0 && len(st.VMsOf(v.ID))+more > limit {
		return store.BadRequest("The vApp %q cannot hold more than %d virtual machines.", v.Name, limit)
	}
	return nil
}

// newVMsFromItem returns the VMs of one item. A SourcedItem copies a VM or a template; a CreateItem describes the VM
// itself.
func newVMsFromItem(r *api.Request, vdc *store.VDC, v *store.VApp, item *xmltree.Node) ([]*store.VM, error) {
	if item.Name != "SourcedItem" {
		vm, err := newRawVM(r, vdc, v, item)
		return []*store.VM{vm}, err
	}
	id := fiql.ID(item.At("Source").Attr("href"))
	if r.Cloud.Store.VMs[id] == nil {
		return newVMsFromTemplate(r, vdc, v, item)
	}
	source, err := vmByID(r, id)
	if err != nil {
		return nil, err
	}
	vm, err := newVMFromVM(r, vdc, v, source, item)
	return []*store.VM{vm}, err
}

// CheckVMQuota refuses new VMs that would exceed the VM quota of a VDC, and all new VMs in a disabled VDC.
func CheckVMQuota(s *cloud.Cloud, vdc *store.VDC, more int) error {
	if err := vdcs.MayUseVDC(vdc); err != nil && more > 0 {
		return err
	}
	if have, _ := machines.VMsOf(s).CountIn(vdc.ID); more > 0 && vdc.VMQuota > 0 && have+more > vdc.VMQuota {
		return store.Refuse(400, "QUOTA_EXCEEDED",
			"The operation could not be performed, because there are no more VMs allowed by the VM quota of VDC %q.",
			vdc.Name)
	}
	return nil
}

// newVMsFromTemplate returns the VMs of an item whose source is a VM of a template, or a whole template.
func newVMsFromTemplate(r *api.Request, vdc *store.VDC, v *store.VApp, item *xmltree.Node) ([]*store.VM, error) {
	sources, err := vmSources(r, item.At("Source"))
	if err != nil {
		return nil, err
	}
	var out []*store.VM
	for _, s := range sources {
		vm, err := newVM(r, vdc, v, s, item)
		if err != nil {
			return nil, err
		}
		out = append(out, vm)
	}
	return out, nil
}

// DefaultAdapter is the adapter type of a NIC whose request does not specify one.
const DefaultAdapter = "VMXNET3"

// adapters are the supported adapter types of NICs.
var adapters = []string{
	DefaultAdapter, "VMXNET", "VMXNET2", "E1000", "E1000E", "FLEXIBLE", "PCNET32", "VLANCE", "SRIOVETHERNETCARD",
}

// newVM returns a VM from a VM of a template, with the parameters of an item.
func newVM(r *api.Request, vdc *store.VDC, v *store.VApp, source vmSource, item *xmltree.Node) (*store.VM, error) {
	t := source.vm
	name := api.OrElse(item.Str("VmGeneralParams", "Name"), source.name)
	if err := api.CheckName("VM", name); err != nil {
		return nil, err
	}
	vm := &store.VM{
		ID:                r.Cloud.IDs.Next("vm"),
		Name:              name,
		Description:       item.Str("VmGeneralParams", "Description"),
		VAppID:            v.ID,
		Status:            store.Unresolved,
		Created:           r.Cloud.Clock.Now(),
		OS:                t.OS,
		HardwareVersion:   api.OrElse(t.HardwareVersion, vdcs.DefaultHardware),
		CPUs:              t.CPUs,
		CoresPerSocket:    1,
		MemoryMiB:         t.MemoryMiB,
		Metadata:          map[string]store.Metadata{},
		ExtraConfig:       t.InitialExtraConfig(),
		Properties:        t.InitialProperties(),
		Customization:     store.Customization{ComputerName: ovf.ComputerName(t.Name)},
		TemplateID:        source.template.ID,
		TemplateName:      source.template.Name,
		KubernetesVersion: source.template.KubernetesVersion,
		LinkedClone:       !vdc.FullClones,
	}
	if err := choosePolicies(r.Cloud.Store, vdc, vm, item); err != nil {
		return nil, err
	}
	vm.Disks = machines.TemplateDisks(t, vm.StorageProfileID)
	giveDefaultIOPS(r.Cloud.Store, vm.Disks)
	params := item.At("InstantiationParams")
	if err := readCustomization(params.At("GuestCustomizationSection"), &vm.Customization); err != nil {
		return nil, err
	}
	if err := chooseNetworks(r, v, vm, t, item); err != nil {
		return nil, err
	}
	return vm, readNewHardware(r, vm, params.At("VirtualHardwareSection"))
}

// choosePolicies sets the storage profile and the sizing and placement policies. Storage profile and sizing policy
// default to those of the VDC.
func choosePolicies(st *store.Store, vdc *store.VDC, vm *store.VM, item *xmltree.Node) error {
	vm.StorageProfileID = vdc.DefaultProfile()
	vm.SizingPolicyID = st.DefaultSizing(vdc)
	if ref := item.At("StorageProfile"); ref != nil {
		id, err := readProfile(st, vdc, ref)
		if err != nil {
			return err
		}
		vm.StorageProfileID = id
	}
	return readPolicies(st, vdc, vm, item.At("ComputePolicy"))
}

// readProfile reads a reference to a storage profile of a VDC and returns the profile's ID.
func readProfile(st *store.Store, vdc *store.VDC, ref *xmltree.Node) (string, error) {
	id := store.Bare(ref.Attr("href"))
	_, in, p := st.Profile(id)
	if p == nil || in.ID != vdc.ID {
		return "", store.Forbidden("VDC_STORAGE_PROFILE_VIEW", id)
	}
	if p.Disabled {
		return "", store.BadRequest("The storage profile %q is disabled.", p.Name)
	}
	return id, nil
}

// readPolicies reads a ComputePolicy element. Policies that it omits keep their values.
func readPolicies(st *store.Store, vdc *store.VDC, vm *store.VM, n *xmltree.Node) error {
	for element, placement := range map[string]bool{"VmSizingPolicy": false, "VmPlacementPolicy": true} {
		ref := n.At(element)
		if ref == nil || ref.Attr("href") == "" && ref.Attr("id") == "" {
			continue
		}
		id := store.Bare(ref.Attr("href"))
		if id == "" {
			id = store.Bare(ref.Attr("id"))
		}
		p := st.Policy(id)
		if p == nil || p.Placement != placement || !slices.Contains(vdc.Policies, p.Name) {
			return store.BadRequest("The VDC compute policy %s is not a %s policy of VDC %q.", id,
				map[bool]string{true: "placement", false: "sizing"}[placement], vdc.Name)
		}
		if placement {
			vm.PlacementPolicyID = id
			vm.Size(p) // vGPU policies may define a size.
			continue
		}
		vm.SizingPolicyID = id
		vm.Size(p)
	}
	return nil
}

var validComputerName = regexp.MustCompile(`^[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?$`)

func readCustomization(section *xmltree.Node, c *store.Customization) error {
	if section == nil {
		return nil
	}
	c.Enabled = section.Bool("Enabled")
	c.Script = section.Str("CustomizationScript")
	readWindowsCustomization(section, c)
	if name := section.Str("ComputerName"); name != "" {
		if !validComputerName.MatchString(name) || strings.Trim(name, "0123456789") == "" {
			return store.BadRequest("The computer name %q is invalid.", name)
		}
		c.ComputerName = name
	}
	return nil
}

// readWindowsCustomization reads the password settings of guest customization and those that only apply to Windows.
// Settings that the section omits keep their values.
func readWindowsCustomization(section *xmltree.Node, c *store.Customization) {
	automatic := !c.AdminPasswordGiven
	for name, into := range map[string]*bool{
		"ChangeSid":             &c.ChangeSID,
		"JoinDomainEnabled":     &c.JoinDomain,
		"UseOrgSettings":        &c.UseOrgSettings,
		"AdminPasswordEnabled":  &c.AdminPasswordEnabled,
		"AdminPasswordAuto":     &automatic,
		"AdminAutoLogonEnabled": &c.AutoLogon,
		"ResetPasswordRequired": &c.ResetPasswordRequired,
	} {
		if section.At(name) != nil {
			*into = section.Bool(name)
		}
	}
	c.AdminPasswordGiven = !automatic
	for name, into := range map[string]*string{
		"DomainName":         &c.Domain,
		"DomainUserName":     &c.DomainUser,
		"DomainUserPassword": &c.DomainPassword,
		"MachineObjectOU":    &c.MachineObjectOU,
		"AdminPassword":      &c.AdminPassword,
	} {
		if section.At(name) != nil {
			*into = section.Str(name)
		}
	}
	if n, ok := section.Int("AdminAutoLogonCount"); ok {
		c.AutoLogonCount = n
	}
}

// chooseNetworks sets the NICs of a VM from a NetworkConnectionSection. Without that section, it creates the NICs of
// the template and connects them to the network of the last NetworkAssignment, if any.
func chooseNetworks(r *api.Request, v *store.VApp, vm *store.VM, t *store.TemplateVM, item *xmltree.Node) error {
	if section := item.At("InstantiationParams", "NetworkConnectionSection"); section != nil {
		return readNICs(r.Cloud, v, vm, section)
	}
	network := "none"
	for _, a := range item.All("NetworkAssignment") {
		network = a.Attr("containerNetwork")
	}
	for i := range t.NICs {
		nic := store.NIC{Index: i, Network: network, Mode: store.ModeDHCP, Adapter: DefaultAdapter, Connected: network != "none"}
		if network == "none" {
			nic.Mode = store.ModeNone
		}
		if err := machines.IPAMOf(r.Cloud).CheckNIC(v, vm, nic); err != nil {
			return err
		}
		vm.NICs = append(vm.NICs, nic)
	}
	return nil
}

// readNICs reads a NetworkConnectionSection. A NIC that keeps its MAC address, network and allocation mode also keeps
// its address.
func readNICs(s *cloud.Cloud, v *store.VApp, vm *store.VM, section *xmltree.Node) error {
	have := map[string]store.NIC{}
	for _, nic := range vm.NICs {
		have[nic.MAC] = nic
	}
	primary, _ := section.Int("PrimaryNetworkConnectionIndex")
	var out []store.NIC
	seen := map[int]bool{}
	for _, c := range section.All("NetworkConnection") {
		nic := readNIC(c)
		if seen[nic.Index] {
			return store.BadRequest("Invalid network parameter: duplicate network connection index %d.", nic.Index)
		}
		seen[nic.Index] = true
		if !slices.Contains(adapters, nic.Adapter) {
			return store.BadRequest("Invalid network parameter: unknown network adapter type %q.", nic.Adapter)
		}
		old, known := have[nic.MAC]
		if known && old.Network == nic.Network && old.Mode == nic.Mode && nic.Mode != store.ModeManual {
			nic.Address = old.Address
			nic.Lease = old.Lease
			nic.Secondary = cmp.Or(nic.Secondary, old.Secondary)
		}
		if err := machines.IPAMOf(s).CheckNIC(v, vm, nic); err != nil {
			return err
		}
		out = append(out, nic)
	}
	slices.SortFunc(out, func(a, b store.NIC) int { return a.Index - b.Index })
	vm.NICs = out
	vm.PrimaryNIC = int(primary)
	return nil
}

func readNIC(c *xmltree.Node) store.NIC {
	index, _ := c.Int("NetworkConnectionIndex")
	nic := store.NIC{
		Index:     int(index),
		Network:   c.Attr("network"),
		MAC:       c.Str("MACAddress"),
		Mode:      c.Str("IpAddressAllocationMode"),
		Adapter:   strings.ToUpper(c.Str("NetworkAdapterType")),
		Connected: c.Bool("IsConnected"),
	}
	if nic.Adapter == "" {
		nic.Adapter = DefaultAdapter
	}
	if nic.Mode == store.ModeManual {
		nic.Address = c.Str("IpAddress")
	}
	if nic.SecondaryMode = c.Str("SecondaryIpAddressAllocationMode"); nic.SecondaryMode == store.ModeManual {
		nic.Secondary = c.Str("SecondaryIpAddress")
	}
	return nic
}
