// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

const someProviderID = "vmware-cloud-director://urn:vcloud:vm:0dd1f8c2-6b52-4d2a-8f4c-2f1b7a4c5d6e"

func TestVCDMachineFeatures(t *testing.T) {
	tests := []rejection[*infrav1.VCDMachine]{
		{"catalog of a zone", func(m *infrav1.VCDMachine) { m.Spec.Catalog = "" }, nil, ""},
		{"a whole spec", func(*infrav1.VCDMachine) {}, nil, ""},
		{
			"an object without defaults",
			func(m *infrav1.VCDMachine) {
				m.Spec = infrav1.VCDMachineSpec{Catalog: "kubernetes", Template: "ubuntu"}
			},
			nil,
			"",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { tt.checkCreate(t, machineValidator(false), machine()) })
	}
}

func TestVCDMachineValues(t *testing.T) {
	manual := func(addresses ...string) func(m *infrav1.VCDMachine) {
		return func(m *infrav1.VCDMachine) {
			m.Spec.Networks = []infrav1.NetworkSpec{{AddressSource: infrav1.AddressManual, Addresses: addresses}}
		}
	}
	pools := func(names ...string) func(m *infrav1.VCDMachine) {
		return func(m *infrav1.VCDMachine) {
			nic := infrav1.NetworkSpec{AddressSource: infrav1.AddressIPAM}
			for _, name := range names {
				nic.PoolRefs = append(nic.PoolRefs,
					infrav1.IPPoolReference{Name: name, Kind: "InClusterIPPool", APIGroup: "ipam.cluster.x-k8s.io"})
			}
			m.Spec.Networks = []infrav1.NetworkSpec{nic}
		}
	}
	route := func(to, via string) func(m *infrav1.VCDMachine) {
		return func(m *infrav1.VCDMachine) {
			m.Spec.Networks = []infrav1.NetworkSpec{{Routes: []infrav1.RouteSpec{{To: to, Via: via}}}}
		}
	}
	naming := func(text string) func(m *infrav1.VCDMachine) {
		return func(m *infrav1.VCDMachine) { m.Spec.VMNamingTemplate = text }
	}
	disk := func(size string) func(m *infrav1.VCDMachine) {
		return func(m *infrav1.VCDMachine) {
			q := resource.MustParse(size)
			m.Spec.DiskSize = &q
		}
	}
	more := func(size, profile string) func(m *infrav1.VCDMachine) {
		return func(m *infrav1.VCDMachine) {
			m.Spec.AdditionalDisks = []infrav1.DiskSpec{{Name: "data", Size: resource.MustParse(size), StorageProfile: profile}}
		}
	}
	memory := func(size string) func(m *infrav1.VCDMachine) {
		return func(m *infrav1.VCDMachine) {
			m.Spec.SizingPolicy = ""
			m.Spec.Memory = ptr.To(resource.MustParse(size))
		}
	}
	metadata := func(entries ...infrav1.MetadataEntry) func(m *infrav1.VCDMachine) {
		return func(m *infrav1.VCDMachine) { m.Spec.VMMetadata = entries }
	}
	text := func(key, value string) infrav1.MetadataEntry {
		return infrav1.MetadataEntry{Key: key, Value: &value}
	}
	typed := func(of infrav1.MetadataType, value string) infrav1.MetadataEntry {
		return infrav1.MetadataEntry{Key: string(of), Value: &value, Type: of}
	}
	template := []string{"spec.vmNamingTemplate"}
	tests := []rejection[*infrav1.VCDMachine]{
		{
			"everything in VCD can have a URN",
			func(m *infrav1.VCDMachine) {
				const id = ":0dd1f8c2-6b52-4d2a-8f4c-2f1b7a4c5d6e"
				m.Spec.Catalog = "urn:vcloud:catalog" + id
				m.Spec.Template = "urn:vcloud:vapptemplate" + id
				m.Spec.SizingPolicy = "urn:vcloud:vdcComputePolicy" + id
				m.Spec.PlacementPolicy = "urn:vcloud:vdcComputePolicy" + id
				m.Spec.StorageProfile = "urn:vcloud:vdcstorageProfile" + id
				m.Spec.Networks[0].Name = "urn:vcloud:network" + id
			},
			nil,
			"",
		},
		{
			"CPUs and memory instead of a policy",
			func(m *infrav1.VCDMachine) {
				m.Spec.SizingPolicy = ""
				m.Spec.CPUs = 4
				m.Spec.Memory = ptr.To(resource.MustParse("8Gi"))
			},
			nil,
			"",
		},
		{
			"CPUs and memory beside a policy",
			func(m *infrav1.VCDMachine) {
				m.Spec.SizingPolicy = "small"
				m.Spec.CPUs = 4
				m.Spec.Memory = ptr.To(resource.MustParse("8Gi"))
			},
			[]string{"spec.cpus", "spec.memory"},
			"remove one of them",
		},
		{
			"VMs on one host or on different ones",
			func(m *infrav1.VCDMachine) {
				m.Spec.Affinity = &infrav1.Affinity{Group: "cache"}
				m.Spec.AntiAffinity = infrav1.AntiAffinityPreferred
			},
			[]string{"spec.affinity"},
			"leave out one of them",
		},
		{"memory that is no multiple of 4Mi", memory("1025Mi"), []string{"spec.memory"}, "a multiple of 4Mi"},
		{"too little memory", memory("8192"), []string{"spec.memory"}, "from 512Mi"},
		{
			"metadata for billing",
			metadata(text("cost center", "4711"), text("empty", "")),
			nil,
			"",
		},
		{
			"metadata of all types",
			metadata(typed(infrav1.MetadataNumber, "-4711"), typed(infrav1.MetadataBoolean, "true"),
				typed(infrav1.MetadataDateTime, "2026-12-31T23:59:59+01:00")),
			nil,
			"",
		},
		{
			"metadata that are none of their type",
			metadata(typed(infrav1.MetadataNumber, "0x10"), typed(infrav1.MetadataBoolean, "yes"),
				typed(infrav1.MetadataDateTime, "today")),
			[]string{"spec.vmMetadata[0].value", "spec.vmMetadata[1].value", "spec.vmMetadata[2].value"},
			"",
		},
		{
			"metadata that VCD does not take",
			metadata(text("", "a"), text("a/b", "a"), text("line", "a\nb"), text("long", strings.Repeat("x", 1001))),
			[]string{"spec.vmMetadata[0].key", "spec.vmMetadata[1].key", "spec.vmMetadata[2].value", "spec.vmMetadata[3].value"},
			"",
		},
		{
			"nothing in VCD has a broken URN",
			func(m *infrav1.VCDMachine) {
				m.Spec.Catalog = "urn:vcloud:a"
				m.Spec.Template = "urn:vcloud:b"
				m.Spec.SizingPolicy = "urn:vcloud:c"
				m.Spec.PlacementPolicy = "urn:vcloud:d"
				m.Spec.StorageProfile = "urn:vcloud:e"
				m.Spec.Networks[0].Name = "urn:vcloud:f"
			},
			[]string{
				"spec.catalog", "spec.template", "spec.sizingPolicy", "spec.placementPolicy", "spec.storageProfile",
				"spec.networks[0].name",
			},
			"must be a name, or a URN",
		},
		{"a provider ID of ours is one", func(m *infrav1.VCDMachine) { m.Spec.ProviderID = someProviderID }, nil, ""},
		{
			"another provider's is not",
			func(m *infrav1.VCDMachine) { m.Spec.ProviderID = "vsphere://x" },
			[]string{"spec.providerID"},
			"remove the field",
		},

		{"a disk has a size", disk("40Gi"), nil, ""},
		{"a size without unit is bytes", disk("40"), []string{"spec.diskSize"}, "use a value such as 40Gi"},
		{"additional disks have a size", more("40Gi", ""), nil, ""},
		{
			"an additional disk of nothing",
			more("0", ""),
			[]string{"spec.additionalDisks[0].size"},
			"must be at least 1Gi",
		},
		{
			"a storage profile of a disk that is another object",
			more("40Gi", someVDC),
			[]string{"spec.additionalDisks[0].storageProfile"},
			"",
		},

		{
			"a name can be a template",
			naming("{{ .machine.Name | trunc 10 }}-{{ .machine.Name | sha256sum | trunc 8 }}"),
			nil,
			"",
		},
		{"a template that cannot be read", naming("{{ .machine.Name"), template, "parsing"},
		{"a template cannot read the environment", naming(`{{ env "HOME" }}`), template, `function "env" not defined`},
		{
			"a template cannot expand the environment",
			naming(`{{ expandenv "$HOME" }}`),
			template,
			`function "expandenv" not defined`,
		},
		{"a template cannot ask DNS", naming(`{{ getHostByName "a" }}`), template, "not defined"},
		{
			"a template gives the same name each time",
			naming(`{{ randAlpha 5 }}`),
			template,
			`function "randAlpha" not defined`,
		},
		{"a template like Cluster API's", naming("{{ .cluster.name }}-{{ .random }}"), nil, ""},
		{"an example of the name must do", naming("{{ .machine.Name }}_x"), template, "demo-md-0-x7k2p-4sgzc_x"},
		{"machines have different names", naming("{{ .cluster.name }}-worker"), template, "the same name"},
		{
			"a template cannot loop",
			naming("{{ range $i := 1000000000000 }}{{ end }}{{ .machine.Name }}"),
			template,
			"must not contain",
		},

		{
			"addresses have a prefix length",
			manual("10.0.0.5"),
			[]string{"spec.networks[0].addresses[0]"},
			"10.0.0.5/24",
		},
		{"addresses are unicast", manual("224.0.0.5/24"), []string{"spec.networks[0].addresses[0]"}, "unicast"},
		{"one address of each family", manual("10.0.0.5/24", "2001:db8::5/64"), nil, ""},
		{
			"not two of one family",
			manual("10.0.0.5/24", "10.0.0.6/24"),
			[]string{"spec.networks[0].addresses[1]"},
			"second address",
		},

		{"addresses from a pool of each family", pools("v4", "v6"), nil, ""},
		{"not twice from one pool", pools("v4", "v4"), []string{"spec.networks[0].poolRefs[1]"}, "Duplicate"},
		{
			"addresses of two NICs are not in one subnet",
			func(m *infrav1.VCDMachine) {
				m.Spec.Networks = []infrav1.NetworkSpec{
					{AddressSource: infrav1.AddressManual, Addresses: []string{"10.0.0.5/16"}},
					{Name: "storage", AddressSource: infrav1.AddressManual, Addresses: []string{"10.0.7.5/24"}},
				}
			},
			[]string{"spec.networks[1].addresses[0]"},
			"is in the subnet of spec.networks[0]",
		},
		{"a route has a gateway", route("172.16.0.0/12", "10.0.0.254"), nil, ""},
		{"a route goes to a subnet", route("172.16.0.1/12", "10.0.0.254"), []string{"spec.networks[0].routes[0].to"}, "subnet"},
		{"a route keeps its family", route("172.16.0.0/12", "fd00::1"), []string{"spec.networks[0].routes[0].via"}, "family"},

		{
			"a name server is an address",
			func(m *infrav1.VCDMachine) { m.Spec.Networks[1].Nameservers = []string{"dns.example.com"} },
			[]string{"spec.networks[1].nameservers[0]"},
			"address",
		},
		{
			"a search domain is a domain",
			func(m *infrav1.VCDMachine) { m.Spec.Networks[1].SearchDomains = []string{"Example_com"} },
			[]string{"spec.networks[1].searchDomains[0]"},
			"RFC 1123",
		},

		{
			"the machine's name is short enough for a host",
			func(m *infrav1.VCDMachine) { m.Name = strings.Repeat("a", 64) },
			[]string{"metadata.name"},
			"vmNamingTemplate",
		},
		{
			"a long machine's name is fine where the VM has another",
			func(m *infrav1.VCDMachine) {
				m.Name = strings.Repeat("a", 64)
				m.Spec.VMNamingTemplate = "{{ .machine.Name | trunc 63 }}"
			},
			nil,
			"",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { tt.checkCreate(t, machineValidator(false), machine()) })
	}
}

func TestVCDMachineDiskChanges(t *testing.T) {
	sized := func(size, providerID string) *infrav1.VCDMachine {
		m := machine()
		m.Spec.ProviderID = providerID
		if size != "" {
			q := resource.MustParse(size)
			m.Spec.DiskSize = &q
		}
		return m
	}
	tests := []struct {
		name           string
		oldObj, newObj *infrav1.VCDMachine
		refused        []string
		words          string
	}{
		{name: "before the VM exists its disk can have any size", oldObj: sized("40Gi", ""), newObj: sized("20Gi", "")},
		{
			name:    "a disk cannot shrink",
			oldObj:  sized("40Gi", someProviderID),
			newObj:  sized("20Gi", someProviderID),
			refused: []string{"spec.diskSize"},
			words:   "keep 40Gi",
		},
		{
			name:    "a disk cannot lose its size",
			oldObj:  sized("40Gi", someProviderID),
			newObj:  sized("", someProviderID),
			refused: []string{"spec.diskSize"},
			words:   "keep 40Gi",
		},
		{name: "a disk can grow under a VM", oldObj: sized("40Gi", someProviderID), newObj: sized("80Gi", someProviderID)},
		{name: "a disk of the template's size can grow", oldObj: sized("", someProviderID), newObj: sized("80Gi", someProviderID)},
		{
			name:   "the same size in other words is no change",
			oldObj: sized("40Gi", someProviderID),
			newObj: sized("40960Mi", someProviderID),
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)

			_, err := machineValidator(false).ValidateUpdate(request(false), tt.oldObj, tt.newObj)

			g.Expect(refusedFields(g, err)).To(Equal(tt.refused))
			if tt.words != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tt.words)))
			}
		})
	}
}

func TestATemplateGivesNoAddressAndNoHostNameTwice(t *testing.T) {
	g := NewWithT(t)
	template := &infrav1.VCDMachineTemplate{}
	template.Spec.Template.Spec = machine().Spec
	template.Spec.Template.Spec.Networks = []infrav1.NetworkSpec{
		{AddressSource: infrav1.AddressManual, Addresses: []string{"10.0.0.5/24"}},
		{
			Name:          "storage",
			AddressSource: infrav1.AddressDHCP,
			DHCPOverrides: &infrav1.DHCPOverrides{Hostname: "node", UseHostname: new(bool)},
		},
	}

	_, err := machineTemplateValidator().ValidateCreate(t.Context(), template)

	g.Expect(refusedFields(g, err)).To(Equal([]string{
		"spec.template.spec.networks[0].addressSource", "spec.template.spec.networks[1].dhcpOverrides.hostname",
	}))
	g.Expect(err).To(MatchError(ContainSubstring("use IPAM with poolRefs")))
}
