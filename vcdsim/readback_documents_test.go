// SPDX-License-Identifier: Apache-2.0

package vcdsim_test

import (
	"net/http"
	"reflect"
	"slices"

	"github.com/vmware/go-vcloud-director/v2/types/v56"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// Reasons why a field is accepted but not stored.
const (
	computed = "VCD computes it"
	creation = "fixed when it is created"
	address  = "written at its own address"
	action   = "changed by an action of its own"
	nsxv     = "of NSX-V, which is not simulated"
	hidden   = "a secret, which is never shown"
)

// writtenModel has one of every writable object.
func writtenModel() vcdsim.Model {
	m := vcdsim.CloudProvider()
	m.Orgs[1].VDCs[0].FullClones = true
	return m
}

// writables returns one document of each writable kind.
func (c *client) writables() []writable {
	return slices.Concat(c.machineDocuments(), c.adminDocuments(), c.networkDocuments(), c.gatewaySettings(), c.providerDocuments())
}

// gatewaySettings returns the settings of an edge gateway.
func (c *client) gatewaySettings() []writable {
	gateway := cloudAPI + "edgeGateways/" + c.gatewayURN()
	return []writable{
		{
			name:     "DNS forwarder",
			path:     gateway + "/dns",
			document: reflect.TypeFor[types.NsxtEdgeGatewayDns](),
		},
		{
			name:     "DHCP forwarder",
			path:     gateway + "/dhcpForwarder",
			document: reflect.TypeFor[types.NsxtEdgeGatewayDhcpForwarder](),
		},
		{
			name:     "SLAAC profile",
			path:     gateway + "/slaacProfile",
			document: reflect.TypeFor[types.NsxtEdgeGatewaySlaacProfile](),
		},
		{
			name:     "QoS",
			path:     gateway + "/qos",
			document: reflect.TypeFor[types.NsxtEdgeGatewayQos](),
			provider: true,
		},
		{
			name:     "BGP",
			path:     gateway + "/routing/bgp",
			document: reflect.TypeFor[types.EdgeBgpConfig](),
		},
		{
			name:     "route advertisement",
			path:     gateway + "/routing/advertisement",
			document: reflect.TypeFor[types.RouteAdvertisement](),
		},
	}
}

// providerDocuments returns the documents of load balancing and of the library.
func (c *client) providerDocuments() []writable {
	first := func(path string) string {
		return cloudAPI + path + "/" + c.provider().values(path)[0]["id"].(string)
	}
	return []writable{
		{
			name:     "ALB controller",
			path:     first("loadBalancer/controllers"),
			document: reflect.TypeFor[types.NsxtAlbController](),
			provider: true,
			ignored: map[string]string{
				"Password": hidden,
			},
		},
		{
			name:     "ALB cloud",
			path:     first("loadBalancer/clouds"),
			document: reflect.TypeFor[types.NsxtAlbCloud](),
			provider: true,
			ignored: map[string]string{
				"DetailedHealthMessage": computed,
				"HealthStatus":          computed,
				"Status":                computed,
			},
		},
		{
			name:     "service engine group",
			path:     first("loadBalancer/serviceEngineGroups"),
			document: reflect.TypeFor[types.NsxtAlbServiceEngineGroup](),
			provider: true,
			ignored: map[string]string{
				"NumDeployedVirtualServices": computed,
				"OverAllocated":              computed,
				"ReservationType":            creation,
				"ReservedVirtualServices":    computed,
			},
		},
		{
			name:     "network pool",
			path:     c.provider().vlanPool("vlans"),
			document: reflect.TypeFor[types.NetworkPool](),
			provider: true,
			ignored: map[string]string{
				"Backing.PortGroupRefs":    "of pools of port groups only",
				"Backing.TransportZoneRef": "of GENEVE pools only",
				"ManagingOwnerRef":         creation,
				"PoolType":                 creation,
				"Status":                   computed,
				"TotalBackingsCount":       computed,
				"UsedBackingsCount":        computed,
			},
		},
		{
			name:     "logical VM group",
			path:     c.provider().logicalGroup("rack-a"),
			document: reflect.TypeFor[types.LogicalVmGroup](),
			provider: true,
			ignored: map[string]string{
				"PvdcID": creation,
			},
		},
		{
			name:     "certificate",
			path:     cloudAPI + "ssl/certificateLibrary/" + c.values("ssl/certificateLibrary")[0]["id"].(string),
			document: reflect.TypeFor[types.CertificateLibraryItem](),
			ignored: map[string]string{
				"Certificate":          creation,
				"PrivateKey":           hidden,
				"PrivateKeyPassphrase": hidden,
			},
		},
	}
}

func (c *client) machineDocuments() []writable {
	vapp := c.vapp("cluster")
	vm := c.vm(vapp, "node")
	second := c.vm(vapp, "second")
	disk := c.ok(http.MethodPost, c.vdc()+"/disk",
		`<DiskCreateParams `+xmlns+`><Disk name="data" sizeMb="1024"/></DiskCreateParams>`).xml.Attr("href")[len(c.sim.URL()):]
	rule := c.ok(http.MethodPost, c.vdc()+"/vmAffinityRules/",
		c.affinity("apart", "Anti-Affinity", true, vm, second)).xml.At("Owner").Attr("href")[len(c.sim.URL()):]
	return []writable{
		{
			name:     "guest customization",
			path:     vm + "/guestCustomizationSection",
			document: reflect.TypeFor[types.GuestCustomizationSection](),
			ignored: map[string]string{
				"VirtualMachineID": computed,
			},
		},
		{
			name:     "network connections",
			path:     vm + "/networkConnectionSection",
			document: reflect.TypeFor[types.NetworkConnectionSection](),
			ignored: map[string]string{
				"NetworkConnection[].ExternalIPAddress":  computed,
				"NetworkConnection[].IPAddress":          "of the mode MANUAL only",
				"NetworkConnection[].IpType":             computed,
				"NetworkConnection[].SecondaryIpAddress": "of the mode MANUAL only",
				"NetworkConnection[].SecondaryIpType":    computed,
			},
		},
		{
			name:     "VM capabilities",
			path:     vm + "/vmCapabilities",
			document: reflect.TypeFor[types.VmCapabilities](),
		},
		{
			name:     "VM",
			path:     vm,
			at:       vm + "/action/reconfigureVm",
			method:   http.MethodPost,
			document: reflect.TypeFor[types.Vm](),
			prepare: func(document any) {
				vm := document.(*types.Vm)
				vm.VmSpecSection.Modified = new(true)
			},
			oneWay: []string{"VmSpecSection.DiskSection.DiskSettings[].SizeMb"},
			ignored: map[string]string{
				"ComputePolicy.VmPlacementPolicyFinal":       "of templates only",
				"ComputePolicy.VmSizingPolicyFinal":          "of templates only",
				"DateCreated":                                computed,
				"Deployed":                                   action,
				"Environment":                                computed,
				"GuestCustomizationSection.VirtualMachineID": computed,
				"Media":                   action,
				"NestedHypervisorEnabled": action,
				"NetworkConnectionSection.NetworkConnection[].ExternalIPAddress":  computed,
				"NetworkConnectionSection.NetworkConnection[].IPAddress":          "of the mode MANUAL only",
				"NetworkConnectionSection.NetworkConnection[].IpType":             computed,
				"NetworkConnectionSection.NetworkConnection[].SecondaryIpAddress": "of the mode MANUAL only",
				"NetworkConnectionSection.NetworkConnection[].SecondaryIpType":    computed,
				"ProductSection":                                               address,
				"RuntimeInfoSection":                                           computed,
				"Snapshots":                                                    action,
				"VAppParent":                                                   computed,
				"VAppScopedLocalID":                                            computed,
				"VirtualHardwareSection.Item":                                  "disks and network cards are changed by their own sections",
				"VirtualHardwareSection.Xmlns":                                 computed,
				"VmSpecSection.CpuResourceMhz.Configured":                      "follows from the number of CPUs",
				"VmSpecSection.CpuResourceMhz.Limit":                           "0 is no limit",
				"VmSpecSection.MemoryResourceMb.Limit":                         "0 is no limit",
				"VmSpecSection.DiskSection.DiskSettings[].AdapterType":         creation,
				"VmSpecSection.DiskSection.DiskSettings[].BusNumber":           creation,
				"VmSpecSection.DiskSection.DiskSettings[].UnitNumber":          creation,
				"VmSpecSection.DiskSection.DiskSettings[].Disk":                action,
				"VmSpecSection.DiskSection.DiskSettings[].IopsAllocation":      "ignored without IOPS limits of the storage profile",
				"VmSpecSection.DiskSection.DiskSettings[].OverrideVmDefault":   "follows from the storage profile",
				"VmSpecSection.DiskSection.DiskSettings[].ThinProvisioned":     "of the VDC",
				"VmSpecSection.DiskSection.DiskSettings[].VirtualQuantity":     "SizeMb says it",
				"VmSpecSection.DiskSection.DiskSettings[].VirtualQuantityUnit": "SizeMb says it",
				"VmSpecSection.MediaSection":                                   action,
				"VmSpecSection.VirtualCpuType":                                 "there is one type of CPUs",
				"VmSpecSection.VmToolsVersion":                                 computed,
			},
		},
		{
			name:     "product sections",
			path:     vm + "/productSections",
			document: reflect.TypeFor[types.ProductSectionList](),
		},
		{
			name:     "vApp networks",
			path:     vapp + "/networkConfigSection",
			document: reflect.TypeFor[types.NetworkConfigSection](),
			ignored: map[string]string{
				"NetworkConfig[].Configuration.BackwardCompatibilityMode": nsxv,
				"NetworkConfig[].Configuration.DistributedInterface":      nsxv,
				"NetworkConfig[].Configuration.SubInterface":              nsxv,
				"NetworkConfig[].Configuration.IPScopes":                  "inherited from the parent network",
				"NetworkConfig[].Configuration.Features":                  "a bridged network has no services",
				"NetworkConfig[].IsDeployed":                              computed,
			},
		},
		{
			name:     "vApp network",
			path:     c.connected(c.vapp("fenced"), c.parent()+`<FenceMode>natRouted</FenceMode>`),
			document: reflect.TypeFor[types.VAppNetwork](),
			ignored: map[string]string{
				"Deployed": computed,
				"Configuration.BackwardCompatibilityMode": nsxv,
				"Configuration.DistributedInterface":      nsxv,
				"Configuration.SubInterface":              nsxv,
				"Configuration.IPScopes":                  "inherited from the parent network",
			},
		},
		{
			name:     "lease",
			path:     vapp + "/leaseSettingsSection",
			document: reflect.TypeFor[types.UpdateLeaseSettingsSection](),
			ignored: map[string]string{
				"DeploymentLeaseExpiration": computed,
				"StorageLeaseExpiration":    computed,
			},
		},
		{
			name:     "independent disk",
			path:     disk,
			document: reflect.TypeFor[types.Disk](),
			oneWay:   []string{"SizeMb"},
			ignored: map[string]string{
				"BusSubType":  creation,
				"BusType":     creation,
				"Encrypted":   computed,
				"Shareable":   creation,
				"SharingType": creation,
				"UUID":        computed,
			},
		},
		{
			name:     "affinity rule",
			path:     rule,
			document: reflect.TypeFor[types.VmAffinityRule](),
		},
	}
}

func (c *client) adminDocuments() []writable {
	m := c.model()
	return []writable{
		{
			name:     "organization",
			path:     "/api/admin/org/" + m.ID,
			document: reflect.TypeFor[types.AdminOrg](),
			provider: true,
			ignored: map[string]string{
				"Catalogs":                              address,
				"Groups":                                address,
				"Networks":                              address,
				"OrgSettings.OrgLdapSettings":           address,
				"OrgSettings.OrgPasswordPolicySettings": address,
				"RightReferences":                       address,
				"RoleReferences":                        address,
				"Users":                                 address,
				"Vdcs":                                  address,
			},
		},
		{
			name:     "LDAP settings",
			path:     c.ldap(),
			document: reflect.TypeFor[types.OrgLdapSettingsType](),
			ignored: map[string]string{
				"CustomOrgLdapSettings.Password": hidden,
			},
		},
		{
			name:     "OpenID Connect settings",
			path:     c.oidc(),
			document: reflect.TypeFor[types.OrgOAuthSettings](),
			ignored: map[string]string{
				"LastKeyRefreshAttempt":    computed,
				"LastKeySuccessfulRefresh": computed,
				"OrgRedirectUri":           computed,
			},
		},
		{
			name:     "user",
			path:     "/api/admin/user/" + m.Users[1].ID,
			document: reflect.TypeFor[types.User](),
			ignored: map[string]string{
				"GroupReferences": "there are no groups",
				"IsGroupRole":     "there are no groups",
				"IsLocked":        computed,
				"NameInSource":    computed,
				"Password":        hidden,
			},
		},
		{
			name:     "catalog",
			path:     "/api/admin/catalog/" + m.Catalogs[0].ID,
			document: reflect.TypeFor[types.AdminCatalog](),
			ignored: map[string]string{
				"CatalogItems":                 address,
				"DateCreated":                  computed,
				"IsPublished":                  action,
				"PublishExternalCatalogParams": action,
				"VersionNumber":                computed,
			},
		},
		{
			name:     "template",
			path:     "/api/vAppTemplate/vappTemplate-" + m.Catalogs[0].Templates[0].ID,
			document: reflect.TypeFor[types.VAppTemplate](),
			ignored: map[string]string{
				"Children":                 creation,
				"CustomizationSection":     creation,
				"DateCreated":              computed,
				"DefaultStorageProfile":    creation,
				"LeaseSettingsSection":     address,
				"NetworkConfigSection":     creation,
				"NetworkConnectionSection": creation,
				"OvfDescriptorUploaded":    computed,
				"ProductSection":           creation,
				"VAppScopedLocalID":        computed,
			},
		},
		{
			name:     "VDC",
			path:     "/api/admin/vdc/" + m.VDCs[0].ID,
			document: reflect.TypeFor[types.AdminVdc](),
			provider: true,
			ignored: map[string]string{
				"AvailableNetworks":                 address,
				"Capabilities":                      computed,
				"ComputeCapacity[].CPU.Reserved":    computed,
				"ComputeCapacity[].CPU.Units":       "shown in MHz",
				"ComputeCapacity[].CPU.Used":        computed,
				"ComputeCapacity[].Memory.Reserved": computed,
				"ComputeCapacity[].Memory.Units":    "shown in MB",
				"ComputeCapacity[].Memory.Used":     computed,
				"NetworkPoolReference":              "there is one",
				"ProviderVdcReference":              creation,
				"ResourceEntities":                  address,
				"ResourcePoolRefs":                  computed,
				"UniversalNetworkPoolReference":     nsxv,
				"UsedNetworkCount":                  computed,
				"VdcStorageProfiles":                action,
			},
		},
		{
			name:     "storage profile",
			path:     "/api/admin/vdcStorageProfile/" + m.VDCs[0].StorageProfiles[0].ID,
			document: reflect.TypeFor[types.AdminVdcStorageProfile](),
			provider: true,
			ignored: map[string]string{
				"IopsAllocated":             computed,
				"Name":                      "of the provider's profile",
				"ProviderVdcStorageProfile": creation,
				"StorageUsedMB":             computed,
				"Units":                     "shown in MB",
			},
		},
		{
			name:     "compute policy",
			path:     "/cloudapi/2.0.0/vdcComputePolicies/urn:vcloud:vdcComputePolicy:" + c.sim.State().Model.Policies[1].ID,
			document: reflect.TypeFor[types.VdcComputePolicyV2](),
			provider: true,
		},
	}
}

func (c *client) networkDocuments() []writable {
	pool := c.pool("api", "192.168.100.11")
	service := c.make("loadBalancer/virtualServices", c.service("api", pool, "203.0.113.20", 6443))
	group := c.make("firewallGroups", `{"name":"nodes","type":"IP_SET","ownerRef":{"id":"`+c.gatewayURN()+
		`"},"ipAddresses":["192.168.100.11"]}`)
	c.make(c.natPath(), dnat("web", "203.0.113.21", "192.168.100.11", ""))
	rule := c.values(c.natPath())[0]["id"].(string)
	state := c.sim.State()
	gateway := cloudAPI + "edgeGateways/" + c.gatewayURN()
	ipsec := c.ipsec("site-b", "198.51.100.7")
	network := cloudAPI + "orgVdcNetworks/urn:vcloud:network:" + c.model().VDCs[0].Networks[1].ID
	return []writable{
		{
			name:     "edge gateway",
			path:     gateway,
			document: reflect.TypeFor[types.OpenAPIEdgeGateway](),
			provider: true,
			ignored: map[string]string{
				"EdgeGatewayUplinks[].BackingType":                           "of the external network",
				"EdgeGatewayUplinks[].QuickAddAllocatedIPCount":              action,
				"EdgeGatewayUplinks[].UplinkName":                            "of the external network",
				"EdgeGatewayUplinks[].UsingIpSpace":                          "of the external network",
				"EdgeGatewayUplinks[].Subnets.Values[].DNSServer1":           "of the external network",
				"EdgeGatewayUplinks[].Subnets.Values[].DNSServer2":           "of the external network",
				"EdgeGatewayUplinks[].Subnets.Values[].DNSSuffix":            "of the external network",
				"EdgeGatewayUplinks[].Subnets.Values[].Enabled":              "of the external network",
				"EdgeGatewayUplinks[].Subnets.Values[].Gateway":              "of the external network",
				"EdgeGatewayUplinks[].Subnets.Values[].PrefixLength":         "of the external network",
				"EdgeGatewayUplinks[].Subnets.Values[].AutoAllocateIPRanges": action,
				"EdgeGatewayUplinks[].Subnets.Values[].TotalIPCount":         "of AutoAllocateIPRanges",
				"EdgeGatewayUplinks[].Subnets.Values[].UsedIPCount":          computed,
				"GatewayBacking":     computed,
				"Org":                computed,
				"OrgVdc":             "OwnerRef says it",
				"OrgVdcNetworkCount": computed,
				"Status":             computed,
				"UsingIpSpace":       computed,
			},
		},
		{
			name:     "network",
			path:     network,
			document: reflect.TypeFor[types.OpenApiOrgVdcNetwork](),
			ignored: map[string]string{
				"BackingNetworkId":            creation,
				"BackingNetworkType":          creation,
				"Connection.ConnectionType":   "ConnectionTypeValue says it",
				"NetworkType":                 creation,
				"OrgVdc":                      "OwnerRef says it",
				"ParentNetwork":               nsxv,
				"SecurityGroups":              computed,
				"SegmentProfileTemplate":      "shown in segmentProfiles",
				"Status":                      computed,
				"Subnets.Values[].DNSServer2": "is the first, without another",
				"TotalIpCount":                computed,
				"UsedIpCount":                 computed,
			},
		},
		{
			name:     "IPsec tunnel",
			path:     ipsec,
			document: reflect.TypeFor[types.NsxtIpSecVpnTunnel](),
		},
		{
			name:     "connection properties of an IPsec tunnel",
			path:     ipsec + "/connectionProperties",
			document: reflect.TypeFor[types.NsxtIpSecVpnTunnelSecurityProfile](),
			prepare: func(document any) {
				document.(*types.NsxtIpSecVpnTunnelSecurityProfile).SecurityType = "CUSTOM"
			},
			ignored: map[string]string{
				"SecurityType": "the test always asks for CUSTOM, without which nothing is written",
			},
		},
		{
			name:     "L2 VPN tunnel",
			path:     c.l2Tunnel("stretch"),
			document: reflect.TypeFor[types.NsxtL2VpnTunnel](),
			ignored: map[string]string{
				"PeerCode":                     computed,
				"PreSharedKey":                 hidden,
				"StretchedNetworks[].TunnelID": computed,
			},
		},
		{
			name:     "DHCP",
			path:     network + "/dhcp",
			document: reflect.TypeFor[types.OpenApiOrgVdcNetworkDhcp](),
		},
		{
			name:     "external network",
			path:     cloudAPI + "externalNetworks/urn:vcloud:network:" + state.Model.ExternalNetworks[0].ID,
			document: reflect.TypeFor[types.ExternalNetworkV2](),
			provider: true,
			ignored: map[string]string{
				"DedicatedEdgeGateway":          computed,
				"NetworkBackings":               creation,
				"Subnets.Values[].TotalIPCount": computed,
				"Subnets.Values[].UsedIPCount":  computed,
				"TotalIpCount":                  computed,
				"UsedIpCount":                   computed,
			},
		},
		{
			name:     "IP Space",
			path:     cloudAPI + "ipSpaces/urn:vcloud:ipSpace:" + state.Model.IPSpaces[0].ID,
			document: reflect.TypeFor[types.IpSpace](),
			provider: true,
			ignored: map[string]string{
				"IPSpacePrefixes[].IPPrefixSequence[].AllocatedPrefixCount": computed,
				"IPSpaceRanges.IPRanges[].AllocatedIPCount":                 computed,
				"IPSpaceRanges.IPRanges[].TotalIPCount":                     computed,
				"Status":                                                    computed,
				"Utilization":                                               computed,
			},
		},
		{
			name:     "IP Space uplink",
			path:     cloudAPI + "ipSpaceUplinks/urn:vcloud:ipSpaceUplink:" + state.Model.IPSpaces[0].Uplinks[0].ID,
			document: reflect.TypeFor[types.IpSpaceUplink](),
			provider: true,
			ignored: map[string]string{
				"IPSpaceType":                computed,
				"Interfaces[].InterfaceType": computed,
				"Interfaces[].Name":          computed,
				"Status":                     computed,
			},
		},
		{
			name:     "pool",
			path:     cloudAPI + "loadBalancer/pools/" + pool,
			document: reflect.TypeFor[types.NsxtAlbPool](),
			ignored: map[string]string{
				"EnabledMemberCount":              computed,
				"HealthMessage":                   computed,
				"MemberCount":                     computed,
				"Members[].DetailedHealthMessage": computed,
				"Members[].HealthStatus":          computed,
				"Members[].MarkedDownBy":          computed,
				"UpMemberCount":                   computed,
				"VirtualServiceRefs":              computed,
			},
		},
		{
			name:     "virtual service",
			path:     cloudAPI + "loadBalancer/virtualServices/" + service,
			document: reflect.TypeFor[types.NsxtAlbVirtualService](),
			ignored: map[string]string{
				"HealthMessage": computed,
				"HealthStatus":  computed,
				"ServicePorts[].TcpUdpProfile.SystemDefined": computed,
			},
		},
		{
			name:     "load balancer of a gateway",
			path:     gateway + "/loadBalancer",
			document: reflect.TypeFor[types.NsxtAlbConfig](),
			provider: true,
			ignored: map[string]string{
				"LicenseType":          "of the controller",
				"LoadBalancerCloudRef": computed,
			},
		},
		{
			name:     "NAT rule",
			path:     cloudAPI + c.natPath() + "/" + rule,
			document: reflect.TypeFor[types.NsxtNatRule](),
		},
		{
			name:     "firewall group",
			path:     cloudAPI + "firewallGroups/" + group,
			document: reflect.TypeFor[types.NsxtFirewallGroup](),
			ignored: map[string]string{
				"EdgeGatewayRef": creation,
				"OwnerRef":       creation,
				"Type":           creation,
				"TypeValue":      creation,
			},
		},
		{
			name:     "application port profile",
			path:     cloudAPI + "applicationPortProfiles/" + c.make("applicationPortProfiles", c.portProfile("web", c.vdcURN())),
			document: reflect.TypeFor[types.NsxtAppPortProfile](),
			ignored: map[string]string{
				"ContextEntityId": creation,
				"OrgRef":          creation,
				"Scope":           creation,
			},
		},
	}
}
