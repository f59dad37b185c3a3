// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"fmt"
	"net/url"

	"github.com/vmware/go-vcloud-director/v2/govcd"
	"github.com/vmware/go-vcloud-director/v2/types/v56"
)

// waitTask waits for the task of a call. It returns the error of the call or the task.
func waitTask(task govcd.Task, err error) error {
	if err != nil {
		return err
	}
	return task.WaitTaskCompletion()
}

// A taggable is an object with metadata.
type taggable interface {
	AddMetadataEntryWithVisibility(key, value, typedValue, visibility string, isSystem bool) error
	DeleteMetadataEntryWithDomain(key string, isSystem bool) error
}

// tag returns a function that alternately adds and removes metadata.
func (s *sdk) tag(of taggable) func() error {
	tagged := false
	return func() error {
		var err error
		if tagged {
			err = of.DeleteMetadataEntryWithDomain("soak", false)
		} else {
			err = of.AddMetadataEntryWithVisibility("soak", text(s.rng), types.MetadataStringValue,
				types.MetadataReadWriteVisibility, false)
		}
		if err == nil {
			tagged = !tagged
		}
		return err
	}
}

// ignoreNotFound returns nil if the error means that an object does not exist.
func ignoreNotFound(err error) error {
	if govcd.ContainsNotFound(err) {
		return nil
	}
	return err
}

func (s *sdk) createDisk(t *object) error {
	var disk *govcd.Disk
	t.remove = func() error {
		found, err := s.vdc.GetDisksByName(t.name, true)
		if err != nil || len(*found) == 0 {
			return ignoreNotFound(err)
		}
		return waitTask((*found)[0].Delete())
	}
	err := waitTask(s.vdc.CreateDisk(&types.DiskCreateParams{Disk: &types.Disk{Name: t.name, SizeMb: 1024}}))
	if err != nil {
		return err
	}
	found, err := s.vdc.GetDisksByName(t.name, true)
	if err != nil {
		return err
	}
	disk = &(*found)[0]
	t.changes = []change{
		{"tag", s.tag(disk)},
		{
			"change",
			func() error {
				if err := disk.Refresh(); err != nil {
					return err
				}
				disk.Disk.SizeMb += 1024
				disk.Disk.Description = text(s.rng)
				return waitTask(disk.Update(disk.Disk))
			},
		},
	}
	return nil
}

func (s *sdk) createNetwork(t *object) error {
	var created *govcd.OpenApiOrgVdcNetwork
	t.remove = func() error {
		found, err := s.vdc.GetOpenApiOrgVdcNetworkByName(t.name)
		if err != nil {
			return ignoreNotFound(err)
		}
		return found.Delete()
	}
	created, err := s.vdc.CreateOpenApiOrgVdcNetwork(&types.OpenApiOrgVdcNetwork{
		Name:        t.name,
		OwnerRef:    &types.OpenApiReference{ID: s.vdc.Vdc.ID},
		NetworkType: types.OrgVdcNetworkTypeIsolated,
		Subnets: types.OrgVdcNetworkSubnets{Values: []types.OrgVdcNetworkSubnetValues{{
			Gateway:      fmt.Sprintf("10.%d.%d.1", 50+s.number, t.number%250),
			PrefixLength: 24,
		}}},
	})
	if err != nil {
		return err
	}
	t.changes = []change{
		{"tag", s.tag(created)},
		{
			"change",
			func() error {
				created.OpenApiOrgVdcNetwork.Description = text(s.rng)
				_, err := created.Update(created.OpenApiOrgVdcNetwork)
				return err
			},
		},
	}
	return nil
}

// createBalancer creates a pool and a virtual service. Each worker uses a different address.
func (s *sdk) createBalancer(t *object) error {
	t.remove = func() error {
		service, err := s.client.GetAlbVirtualServiceByName(s.edge.EdgeGateway.ID, t.name)
		if err == nil {
			err = service.Delete()
		}
		if ignoreNotFound(err) != nil {
			return err
		}
		pool, err := s.client.GetAlbPoolByName(s.edge.EdgeGateway.ID, t.name)
		if err != nil {
			return ignoreNotFound(err)
		}
		return pool.Delete()
	}
	gateway := types.OpenApiReference{ID: s.edge.EdgeGateway.ID}
	pool, err := s.client.CreateNsxtAlbPool(&types.NsxtAlbPool{
		Name:        t.name,
		GatewayRef:  gateway,
		Enabled:     new(true),
		DefaultPort: new(6443),
		Members:     []types.NsxtAlbPoolMember{{IpAddress: "192.168.100.20", Port: 6443, Enabled: true}},
	})
	if err != nil {
		return err
	}
	group, err := s.client.GetAllAlbServiceEngineGroupAssignments(url.Values{"filter": {"gatewayRef.id==" + gateway.ID}})
	if err != nil {
		return err
	}
	service, err := s.client.CreateNsxtAlbVirtualService(&types.NsxtAlbVirtualService{
		Name:                  t.name,
		Enabled:               new(true),
		GatewayRef:            gateway,
		LoadBalancerPoolRef:   types.OpenApiReference{ID: pool.NsxtAlbPool.ID},
		ServiceEngineGroupRef: *group[0].NsxtAlbServiceEngineGroupAssignment.ServiceEngineGroupRef,
		ApplicationProfile:    types.NsxtAlbVirtualServiceApplicationProfile{SystemDefined: true, Type: "L4"},
		ServicePorts: []types.NsxtAlbVirtualServicePort{{
			PortStart:     new(6443),
			TcpUdpProfile: &types.NsxtAlbVirtualServicePortTcpUdpProfile{SystemDefined: true, Type: "TCP_PROXY"},
		}},
		VirtualIpAddress: fmt.Sprintf("203.0.113.%d", 20+s.number),
	})
	if err != nil {
		return err
	}
	t.changes = []change{
		{
			"change the pool of",
			func() error {
				pool.NsxtAlbPool.Members[0].IpAddress = fmt.Sprintf("192.168.100.%d", 10+s.rng.IntN(80))
				_, err := pool.Update(pool.NsxtAlbPool)
				return err
			},
		},
		{
			"change",
			func() error {
				service.NsxtAlbVirtualService.Description = text(s.rng)
				_, err := service.Update(service.NsxtAlbVirtualService)
				return err
			},
		},
	}
	return nil
}

func (s *sdk) createNAT(t *object) error {
	t.remove = func() error {
		found, err := s.edge.GetNatRuleByName(t.name)
		if err != nil {
			return ignoreNotFound(err)
		}
		return found.Delete()
	}
	created, err := s.edge.CreateNatRule(&types.NsxtNatRule{
		Name:              t.name,
		Enabled:           true,
		Type:              types.NsxtNatRuleTypeDnat,
		ExternalAddresses: fmt.Sprintf("203.0.113.%d", 40+s.number),
		InternalAddresses: fmt.Sprintf("192.168.100.%d", 10+t.number%80),
		DnatExternalPort:  fmt.Sprint(1024 + t.number%60000),
	})
	if err != nil {
		return err
	}
	t.changes = []change{{
		"change",
		func() error {
			created.NsxtNatRule.Description = text(s.rng)
			changed, err := created.Update(created.NsxtNatRule)
			if err == nil {
				created = changed
			}
			return err
		},
	}}
	return nil
}

func (s *sdk) createIPSet(t *object) error {
	t.remove = func() error {
		found, err := s.vdc.GetNsxtFirewallGroupByName(t.name, types.FirewallGroupTypeIpSet)
		if err != nil {
			return ignoreNotFound(err)
		}
		return found.Delete()
	}
	created, err := s.vdc.CreateNsxtFirewallGroup(&types.NsxtFirewallGroup{
		Name:        t.name,
		OwnerRef:    &types.OpenApiReference{ID: s.edge.EdgeGateway.ID},
		Type:        types.FirewallGroupTypeIpSet,
		IpAddresses: []string{"10.1.1.1"},
	})
	if err != nil {
		return err
	}
	t.changes = []change{{
		"change",
		func() error {
			created.NsxtFirewallGroup.IpAddresses = []string{fmt.Sprintf("10.1.1.%d", 1+s.rng.IntN(200))}
			_, err := created.Update(created.NsxtFirewallGroup)
			return err
		},
	}}
	return nil
}

func (s *sdk) createTunnel(t *object) error {
	t.remove = func() error {
		found, err := s.edge.GetIpSecVpnTunnelByName(t.name)
		if err != nil {
			return ignoreNotFound(err)
		}
		return found.Delete()
	}
	created, err := s.edge.CreateIpSecVpnTunnel(&types.NsxtIpSecVpnTunnel{
		Name:    t.name,
		Enabled: true,
		LocalEndpoint: types.NsxtIpSecVpnTunnelLocalEndpoint{
			LocalAddress:  "203.0.113.10",
			LocalNetworks: []string{"192.168.100.0/24"},
		},
		RemoteEndpoint: types.NsxtIpSecVpnTunnelRemoteEndpoint{
			RemoteAddress: fmt.Sprintf("198.18.%d.%d", s.number*30+t.number/250%30, 1+t.number%250),
		},
		PreSharedKey: "secret",
	})
	if err != nil {
		return err
	}
	t.changes = []change{{
		"change",
		func() error {
			created.NsxtIpSecVpn.Description = text(s.rng)
			changed, err := created.Update(created.NsxtIpSecVpn)
			if err == nil {
				created = changed
			}
			return err
		},
	}}
	return nil
}

func (s *sdk) createEntity(t *object) error {
	entities, err := s.entityUser.GetRdeType("vmware", "capvcdCluster", "1.3.0")
	if err != nil {
		return err
	}
	created, err := entities.CreateRde(types.DefinedEntity{
		Name:   t.name,
		Entity: map[string]any{"kind": "CAPVCDCluster", "apiVersion": "capvcd.vmware.com/v1.1"},
	}, nil)
	if err != nil {
		return err
	}
	t.remove = created.Delete
	if err := created.Resolve(); err != nil {
		return err
	}
	t.changes = []change{
		{"tag", s.tagEntity(created)},
		{
			"change",
			func() error {
				changed := *created.DefinedEntity
				changed.Entity["metadata"] = map[string]any{"name": text(s.rng)}
				return created.Update(changed)
			},
		},
	}
	return nil
}

// tagEntity returns a function that alternately adds and removes metadata of an entity.
func (s *sdk) tagEntity(of *govcd.DefinedEntity) func() error {
	var entry *govcd.OpenApiMetadataEntry
	return func() error {
		if entry != nil {
			err := entry.Delete()
			if err == nil {
				entry = nil
			}
			return err
		}
		var err error
		entry, err = of.AddMetadata(types.OpenApiMetadataEntry{KeyValue: types.OpenApiMetadataKeyValue{
			Domain: "TENANT",
			Key:    "soak",
			Value:  types.OpenApiMetadataTypedValue{Type: types.OpenApiMetadataStringEntry, Value: text(s.rng)},
		}})
		return err
	}
}

// createAllocation allocates a floating IP from the IP Space.
func (s *sdk) createAllocation(t *object) error {
	space, err := s.client.GetIpSpaceByName("public")
	if err != nil {
		return err
	}
	results, err := space.AllocateIp(s.org.Org.ID, s.org.Org.Name,
		&types.IpSpaceIpAllocationRequest{Type: types.IpSpaceIpAllocationTypeFloatingIp, Quantity: new(1)})
	if err != nil {
		return err
	}
	created, err := s.org.GetIpSpaceAllocationByTypeAndValue(space.IpSpace.ID, types.IpSpaceIpAllocationTypeFloatingIp,
		results[0].Value, nil)
	if err != nil {
		return err
	}
	t.remove = created.Delete
	return nil
}
