// SPDX-License-Identifier: Apache-2.0

// Package ids creates the identifiers of the simulator, UUIDs and MAC addresses, reproducibly from a seed. It also sets
// the missing IDs of a model. It does not know requests or the use of the entities.
package ids

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// A Source creates identifiers that depend only on the seed and on the order of requests. Its fields are its state,
// which dumps contain.
type Source struct {
	Seed  int64
	Count map[string]int // number of IDs by kind
	MACs  int
	Dice  *rand.PCG // the source of Rand
	Rand  *rand.Rand
}

// New returns the source of a seed.
func New(seed int64) *Source {
	dice := rand.NewPCG(uint64(seed), 0x5643) //nolint:gosec // any constant is fine
	rng := rand.New(dice)                     //nolint:gosec // reproducible on purpose
	return &Source{Seed: seed, Count: map[string]int{}, Dice: dice, Rand: rng}
}

// Next returns the next UUID of a kind.
func (i *Source) Next(kind string) string {
	i.Count[kind]++
	return i.Named(kind, fmt.Sprint(i.Count[kind]))
}

// Named returns the UUID of a kind and a name. It is always the same for a seed.
func (i *Source) Named(kind, name string) string {
	h := sha256.Sum256([]byte(fmt.Sprintf("%d/%s/%s", i.Seed, kind, name)))
	h[6] = h[6]&0x0f | 0x50 // UUID version 5
	h[8] = h[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", h[0:4], h[4:6], h[6:8], h[8:10], h[10:16])
}

// MAC returns the next MAC address from VMware's range for generated addresses.
func (i *Source) MAC() string {
	i.MACs++
	n := i.MACs
	return fmt.Sprintf("00:50:56:%02x:%02x:%02x", (n>>16)&0x3f, (n>>8)&0xff, n&0xff)
}

// Fill sets the missing IDs of all entities in a model.
func (i *Source) Fill(m *store.Model) {
	for p := range m.Policies {
		i.set(&m.Policies[p].ID, "vdcComputePolicy", m.Policies[p].Name)
	}
	for o := range m.Orgs {
		org := &m.Orgs[o]
		i.set(&org.ID, "org", org.Name)
		for u := range org.Users {
			i.set(&org.Users[u].ID, "user", org.Name+"/"+org.Users[u].Name)
		}
		for v := range org.VDCs {
			vdc := &org.VDCs[v]
			i.set(&vdc.ID, "vdc", org.Name+"/"+vdc.Name)
			for p := range vdc.StorageProfiles {
				i.set(&vdc.StorageProfiles[p].ID, "vdcstorageProfile", vdc.ID+vdc.StorageProfiles[p].Name)
			}
			for n := range vdc.Networks {
				i.set(&vdc.Networks[n].ID, "network", vdc.ID+vdc.Networks[n].Name)
			}
		}
		for c := range org.Catalogs {
			i.fillCatalog(&org.Catalogs[c], org.Name)
		}
	}
	i.fillNetworks(m)
}

func (i *Source) fillCatalog(c *store.Catalog, org string) {
	i.set(&c.ID, "catalog", org+"/"+c.Name)
	for n := range c.Media {
		m := &c.Media[n]
		i.set(&m.ID, "media", c.ID+m.Name)
		i.set(&m.ItemID, "catalogitem", c.ID+m.Name)
		if m.Status == store.Unresolved && m.Upload == "" {
			m.Status = store.Resolved
		}
	}
	for t := range c.Templates {
		tpl := &c.Templates[t]
		i.set(&tpl.ID, "vapptemplate", c.ID+tpl.Name)
		i.set(&tpl.ItemID, "catalogitem", c.ID+tpl.Name)
		if tpl.Status == 0 {
			tpl.Status = int(store.PoweredOff)
		}
		for v := range tpl.VMs {
			i.set(&tpl.VMs[v].ID, "vm", tpl.ID+tpl.VMs[v].Name)
		}
	}
}
