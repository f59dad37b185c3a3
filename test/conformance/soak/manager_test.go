// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// maxDisks is the maximum number of disks per VM.
const maxDisks = 3

// A manager uses this project's client like its manager: for vApps with their VMs, and for entities.
type manager struct {
	rng      *rand.Rand
	config   vcd.Config
	pool     *vcd.Pool
	session  *vcd.Session
	vdc      vcd.VDC
	network  vcd.Network
	template vcd.Template
	kind     string // the URN of the entity type
}

func newManager(a assignment) (client, error) {
	return &manager{rng: a.rng, config: configOf(a, "capvcd")}, nil
}

// configOf returns the configuration of this project's client for a user of the organization.
func configOf(a assignment, user string) vcd.Config {
	return vcd.Config{
		Site:        a.sim.URL(),
		Org:         "acme",
		CABundle:    a.sim.CA(),
		Version:     "1",
		Credentials: vcd.Credentials{Username: user, Password: "password"},
	}
}

// newPool returns a pool whose rate limits have no effect, because only this process calls the simulator.
func newPool() *vcd.Pool {
	return vcd.NewPool(vcd.PoolOptions{TaskPoll: 2 * time.Millisecond, RequestsPerSecond: 10000, Burst: 10000})
}

func (m *manager) kinds() []kind {
	return []kind{
		{name: "vApp", create: m.createVApp},
		{name: "entity", create: m.createEntity},
	}
}

// login creates a new pool, as a new process does, and looks up the objects that the manager needs.
func (m *manager) login() (err error) {
	ctx := context.Background()
	m.pool = newPool()
	if m.session, err = m.pool.Session(ctx, m.config); err != nil {
		return err
	}
	if m.vdc, err = m.session.VDCs.FindVDC(ctx, "acme-vdc"); err != nil {
		return err
	}
	if m.network, err = m.session.Networks.FindNetwork(ctx, m.vdc, "nodes"); err != nil {
		return err
	}
	catalog, err := m.session.Templates.FindCatalog(ctx, "kubernetes")
	if err != nil {
		return err
	}
	if m.template, err = m.session.Templates.FindTemplate(ctx, catalog.ID, "ubuntu-2404-kube-v1.36.3"); err != nil {
		return err
	}
	types, err := m.session.Entities.TypeVersions(ctx, "vmware", "capvcdCluster")
	if err != nil {
		return err
	}
	m.kind = types[len(types)-1].ID
	return nil
}

func (m *manager) logout() error { return m.pool.Close(context.Background()) }

func (m *manager) expected(err error) bool {
	return errors.Is(err, vcd.ErrBusy) || errors.Is(err, vcd.ErrLater) || errors.Is(err, vcd.ErrThrottled)
}

// wait waits for the task of a call. It returns the error of the call or the task.
func (m *manager) wait(task vcd.Task, err error) error {
	if err != nil {
		return err
	}
	ended, err := m.session.Tasks.Wait(context.Background(), task, time.After(timeout))
	if err != nil || ended.State == vcd.TaskSucceeded {
		return err
	}
	return fmt.Errorf("task %s ended with status %q: %w", ended.Operation, ended.State, ended.Err)
}

// vm returns the spec of a new VM.
func (m *manager) vm(name string) vcd.VMSpec {
	return vcd.VMSpec{
		Name:         name,
		ComputerName: name,
		Template:     m.template,
		NICs:         []vcd.NIC{{Network: "nodes", Mode: vcd.ModePool, Primary: true}},
	}
}

// createVApp creates a vApp with two VMs.
func (m *manager) createVApp(t *object) error {
	ctx := context.Background()
	t.remove = func() error { return m.removeVApp(t.name) }
	vApp, task, err := m.session.VApps.ComposeVApp(ctx, m.vdc, vcd.VAppSpec{
		Name:        t.name,
		Description: vcd.Marker{Cluster: t.name}.String(),
		Networks:    []vcd.Ref{m.network.Ref},
		VMs:         []vcd.VMSpec{m.vm(t.name + "-a"), m.vm(t.name + "-b")},
	})
	if err := m.wait(task, err); err != nil {
		return err
	}
	added := 0
	t.changes = []change{
		{
			"add a VM to",
			func() error {
				added++
				return m.addVM(vApp.ID, fmt.Sprintf("%s-%d", t.name, added))
			},
		},
		{"delete a VM in", func() error { return m.withVM(vApp.ID, m.deleteVM) }},
		{"power a VM on or off in", func() error { return m.withVM(vApp.ID, m.togglePower) }},
		{"reconfigure a VM in", func() error { return m.withVM(vApp.ID, m.reconfigure) }},
		{"tag a VM in", func() error { return m.withVM(vApp.ID, m.tag) }},
		{"set the lease of", func() error { return m.setLease(vApp.ID) }},
		{"add or remove a rule of", func() error { return m.toggleRule(vApp.ID, t.name) }},
	}
	return nil
}

func (m *manager) addVM(vAppID, name string) error {
	return m.wait(m.session.VApps.AddVMs(context.Background(), vAppID, []vcd.VMSpec{m.vm(name)}))
}

func (m *manager) setLease(vAppID string) error {
	runtime := time.Duration(1+m.rng.IntN(48)) * time.Hour
	return m.wait(m.session.VApps.SetLease(context.Background(), vAppID, runtime, 0))
}

// withVM calls do with a random VM in a vApp. It does nothing if the vApp is empty.
func (m *manager) withVM(vAppID string, do func(vm vcd.VM) error) error {
	ctx := context.Background()
	vApp, err := m.session.VApps.VApp(ctx, vAppID)
	if err != nil || len(vApp.VMs) == 0 {
		return err
	}
	vm, err := m.session.VMs.VM(ctx, vApp.VMs[m.rng.IntN(len(vApp.VMs))].ID)
	if err != nil {
		return err
	}
	return do(vm)
}

// togglePower powers a VM on or off.
func (m *manager) togglePower(vm vcd.VM) error {
	if vm.Deployed {
		return m.wait(m.session.VMs.PowerOff(context.Background(), vm.ID))
	}
	return m.wait(m.session.VMs.PowerOn(context.Background(), vm.ID))
}

// deleteVM deletes a VM if it is off, and otherwise powers it off.
func (m *manager) deleteVM(vm vcd.VM) error {
	if vm.Deployed {
		return m.togglePower(vm)
	}
	return m.wait(m.session.VMs.DeleteVM(context.Background(), vm.ID))
}

// reconfigure changes the extra configuration of a VM or, if it is off, possibly its hardware.
func (m *manager) reconfigure(vm vcd.VM) error {
	changed := vcd.VMChange{ExtraConfig: map[string]string{"guestinfo.userdata": text(m.rng)}}
	if !vm.Deployed && m.rng.IntN(2) == 0 {
		changed = vcd.VMChange{CPUs: int64(1 + m.rng.IntN(4)), MemoryMiB: int64(1024 * (1 + m.rng.IntN(4)))}
		if len(vm.Disks) < maxDisks {
			changed.NewDisks = []vcd.NewDisk{{SizeMiB: 1024}}
		}
	}
	return m.wait(m.session.VMs.ReconfigureVM(context.Background(), vm.ID, changed))
}

// tag adds metadata to a VM, or removes it if it exists.
func (m *manager) tag(vm vcd.VM) error {
	ctx := context.Background()
	entries, err := m.session.VMs.Metadata(ctx, vm.ID)
	if err != nil {
		return err
	}
	if len(entries) > 0 {
		return m.wait(m.session.VMs.RemoveMetadata(ctx, vm.ID, entries[0].Key, entries[0].Access))
	}
	return m.wait(m.session.VMs.SetMetadata(ctx, vm.ID, []vcd.MetadataEntry{{
		Key:    "soak",
		Type:   vcd.MetadataString,
		Access: vcd.MetadataReadWrite,
		Value:  text(m.rng),
	}}))
}

// toggleRule creates or deletes an anti-affinity rule for the VMs in a vApp.
func (m *manager) toggleRule(vAppID, name string) error {
	ctx := context.Background()
	rule, found, err := m.findRule(name)
	if err != nil {
		return err
	}
	if found {
		return m.wait(m.session.Affinity.DeleteAffinityRule(ctx, rule.ID))
	}
	vApp, err := m.session.VApps.VApp(ctx, vAppID)
	if err != nil || len(vApp.VMs) < vcd.MinRuleVMs {
		return err
	}
	return m.wait(m.session.Affinity.CreateAffinityRule(ctx, m.vdc, vcd.AffinityRule{
		Ref:     vcd.Ref{Name: name},
		Apart:   true,
		Enabled: true,
		VMs:     vApp.VMs,
	}))
}

func (m *manager) findRule(name string) (vcd.AffinityRule, bool, error) {
	m.session.Affinity.ForgetAffinityRules()
	rules, err := m.session.Affinity.AffinityRules(context.Background(), m.vdc)
	if err != nil {
		return vcd.AffinityRule{}, false, err
	}
	for _, rule := range rules {
		if rule.Name == name {
			return rule, true, nil
		}
	}
	return vcd.AffinityRule{}, false, nil
}

// removeVApp deletes the affinity rule and the vApp with its VMs, if they exist.
func (m *manager) removeVApp(name string) error {
	rule, found, err := m.findRule(name)
	if err != nil {
		return err
	}
	if found {
		if err := m.wait(m.session.Affinity.DeleteAffinityRule(context.Background(), rule.ID)); err != nil {
			return err
		}
	}
	return m.deleteVApp(name)
}

// deleteVApp repeats the steps of a deletion, such as a power-off, until the vApp is gone.
func (m *manager) deleteVApp(name string) error {
	ctx := context.Background()
	for {
		vApp, err := m.session.VApps.FindVApp(ctx, m.vdc, name)
		if err != nil {
			return vcd.IgnoreNotFound(err)
		}
		if err := m.wait(m.session.VApps.DeleteVApp(ctx, vApp.ID)); err != nil {
			return err
		}
	}
}

// createEntity creates an entity like the one of a cluster.
func (m *manager) createEntity(t *object) error {
	ctx := context.Background()
	t.remove = func() error { return m.removeEntity(t.name) }
	content, err := json.Marshal(clusterEntity(t.name))
	if err != nil {
		return err
	}
	id, err := m.session.Entities.Create(ctx, vcd.EntitySpec{
		Type:       m.kind,
		Name:       t.name,
		ExternalID: t.name,
		Content:    content,
	})
	if err != nil {
		return err
	}
	if _, err := m.session.Entities.Resolve(ctx, id); err != nil {
		return err
	}
	t.changes = []change{{
		"change",
		func() error {
			read, err := m.session.Entities.Get(ctx, id)
			if err != nil {
				return err
			}
			content, err := json.Marshal(clusterEntity(text(m.rng)))
			if err != nil {
				return err
			}
			_, err = m.session.Entities.Update(ctx, read, content)
			return err
		},
	}}
	return nil
}

func (m *manager) removeEntity(name string) error {
	ctx := context.Background()
	found, err := m.session.Entities.Find(ctx, vcd.EntityKind{Vendor: "vmware", NSS: "capvcdCluster"}, name, name)
	if err != nil || len(found) == 0 {
		return err
	}
	return m.session.Entities.Delete(ctx, found[0].ID)
}

// clusterEntity returns the content of the entity of a cluster.
func clusterEntity(name string) map[string]any {
	return map[string]any{
		"kind":       "CAPVCDCluster",
		"apiVersion": "capvcd.vmware.com/v1.1",
		"metadata":   map[string]any{"name": name},
		"status":     map[string]any{},
	}
}
