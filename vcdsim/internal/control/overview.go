// SPDX-License-Identifier: Apache-2.0

package control

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cells"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/journal"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// An overview is the content of the page. Its size is bounded for sites of any size.
type overview struct { // lists are never null
	Clock     clockJSON          `json:"clock"`
	URL       string             `json:"url"`
	Cells     []cells.CellStatus `json:"cells"`
	Counts    overviewCounts     `json:"counts"`
	VApps     []overviewVApp     `json:"vApps"`
	MoreVApps int                `json:"moreVApps"` // number of omitted vApps
	overviewNetworks
	Tasks    []overviewTask    `json:"tasks"` // unfinished tasks, then the last ended ones
	Requests []journal.Request `json:"requests"`
	Last     int               `json:"last"` // number of the last request
	Unknown  []string          `json:"unknown"`
}

type overviewCounts struct {
	Orgs     int `json:"orgs"`
	VApps    int `json:"vApps"`
	VMs      int `json:"vms"`
	VMsOn    int `json:"vmsOn"`
	Disks    int `json:"disks"`
	Sessions int `json:"sessions"`
	Running  int `json:"tasksRunning"`
	Faults   int `json:"faults"`
}

type overviewVApp struct {
	ID      string       `json:"id"`
	Name    string       `json:"name"`
	Org     string       `json:"org"`
	VDC     string       `json:"vdc"`
	Status  string       `json:"status"`
	Busy    bool         `json:"busy"`
	Count   int          `json:"count"` // number of VMs
	VMs     []overviewVM `json:"vms"`
	MoreVMs int          `json:"moreVMs"` // number of omitted VMs
}

type overviewVM struct {
	ID        string   `json:"id"`
	Name      string   `json:"name"`
	Status    string   `json:"status"`
	Busy      bool     `json:"busy"`
	CPUs      int64    `json:"cpus"`
	MemoryMiB int64    `json:"memoryMiB"`
	Addresses []string `json:"addresses"`
	Guest     string   `json:"guest"` // booting, up, or an error
}

type overviewTask struct {
	ID        string           `json:"id"`
	Operation string           `json:"operation"`
	Status    store.TaskStatus `json:"status"`
	Progress  int              `json:"progress"`
	User      string           `json:"user"`
	Started   time.Time        `json:"started"`
	Error     string           `json:"error,omitempty"`
}

// Maximum numbers of objects on the page.
const (
	shownVApps    = 100
	shownVMs      = 50 // per vApp
	shownTasks    = 50
	shownEnded    = 10
	shownRequests = 200
)

func (ctl *Control) getOverview(r *api.Request) (*api.Response, error) {
	since, err := strconv.Atoi(r.Query.Get("since"))
	if err != nil {
		since = 0
	}
	s := ctl.Cloud
	out := overview{
		Clock:   clockStatus(s),
		URL:     ctl.Site.URL(),
		Cells:   cellStatuses(ctl.Cells),
		Unknown: append([]string{}, ctl.Journal.UnknownRoutes()...),
	}
	out.Requests, out.Last = ctl.Journal.Since(since, shownRequests)
	s.Mu.Lock()
	defer s.Mu.Unlock()
	filter := strings.ToLower(r.Query.Get("filter"))
	out.Counts = ctl.overviewOfCounts()
	out.VApps, out.MoreVApps = overviewOfVApps(s, filter)
	out.overviewNetworks = overviewOfNetworks(s, filter)
	out.Tasks = overviewOfTasks(s)
	return api.JSON(out), nil
}

func (ctl *Control) overviewOfCounts() overviewCounts {
	s := ctl.Cloud
	c := overviewCounts{
		Orgs:     len(s.Store.Model.Orgs),
		VApps:    len(s.Store.VApps),
		VMs:      len(s.Store.VMs),
		Disks:    len(s.Store.Disks),
		Sessions: len(s.Store.Sessions),
		Faults:   len(ctl.Faults.List()),
	}
	for _, vm := range s.Store.VMs {
		if vm.Status == store.PoweredOn {
			c.VMsOn++
		}
	}
	for _, t := range s.Store.Tasks {
		if !t.Done() {
			c.Running++
		}
	}
	return c
}

// overviewOfVApps returns the vApps with the filter in their name or in the name of a VM, sorted by name.
func overviewOfVApps(s *cloud.Cloud, filter string) (shown []overviewVApp, more int) {
	var all []*store.VApp
	for _, v := range s.Store.VApps {
		if matches(v.Name, filter) ||
			slices.ContainsFunc(s.Store.VMsOf(v.ID), func(vm *store.VM) bool { return matches(vm.Name, filter) }) {
			all = append(all, v)
		}
	}
	slices.SortFunc(all, func(a, b *store.VApp) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })
	shown = []overviewVApp{}
	for _, v := range all[:min(len(all), shownVApps)] {
		shown = append(shown, overviewOfVApp(s, v, filter))
	}
	return shown, len(all) - len(shown)
}

func matches(name, filter string) bool { return strings.Contains(strings.ToLower(name), filter) }

func overviewOfVApp(s *cloud.Cloud, v *store.VApp, filter string) overviewVApp {
	out := overviewVApp{
		ID:     v.ID,
		Name:   v.Name,
		Status: s.Store.Status(v).Text(),
		Busy:   s.Tasks.Busy(v.ID),
		VMs:    []overviewVM{},
	}
	if org, vdc := s.Store.VDC(v.VDCID); vdc != nil {
		out.Org = org.Name
		out.VDC = vdc.Name
	}
	vms := s.Store.VMsOf(v.ID)
	out.Count = len(vms)
	if !matches(v.Name, filter) {
		vms = slices.DeleteFunc(slices.Clone(vms), func(vm *store.VM) bool { return !matches(vm.Name, filter) })
	}
	for _, vm := range vms[:min(len(vms), shownVMs)] {
		out.VMs = append(out.VMs, overviewOfVM(s, vm))
	}
	out.MoreVMs = len(vms) - len(out.VMs)
	return out
}

func overviewOfVM(s *cloud.Cloud, vm *store.VM) overviewVM {
	out := overviewVM{
		ID:        vm.ID,
		Name:      vm.Name,
		Status:    vm.Status.Text(),
		Busy:      s.Tasks.Busy(vm.ID),
		CPUs:      vm.CPUs,
		MemoryMiB: vm.MemoryMiB,
		Addresses: []string{},
	}
	for _, nic := range vm.NICs {
		if nic.Address != "" {
			out.Addresses = append(out.Addresses, nic.Address)
		}
	}
	switch {
	case vm.Status != store.PoweredOn:
	case vm.Boot.Failure != "":
		out.Guest = vm.Boot.Failure
	case vm.Boot.Up:
		out.Guest = "up"
	default:
		out.Guest = "booting"
	}
	return out
}

// overviewOfTasks returns the unfinished tasks, newest first, then the last ended ones.
func overviewOfTasks(s *cloud.Cloud) []overviewTask {
	var running, ended []*store.Task
	for _, t := range s.Store.Tasks {
		if t.Done() {
			ended = append(ended, t)
		} else {
			running = append(running, t)
		}
	}
	slices.SortFunc(running,
		func(a, b *store.Task) int { return cmp.Or(b.Started.Compare(a.Started), cmp.Compare(a.ID, b.ID)) })
	slices.SortFunc(ended, func(a, b *store.Task) int { return cmp.Or(b.Ended.Compare(a.Ended), cmp.Compare(a.ID, b.ID)) })
	out := []overviewTask{}
	for _, t := range slices.Concat(running[:min(len(running), shownTasks)], ended[:min(len(ended), shownEnded)]) {
		o := overviewTask{
			ID:        t.ID,
			Operation: t.Operation,
			Status:    t.Status,
			Progress:  t.Progress(s.Clock.Now()),
			User:      t.UserName,
			Started:   t.Started,
		}
		if t.Error != nil {
			o.Error = t.Error.Message
		}
		out = append(out, o)
	}
	return out
}
