// Package session opens sessions in VCD for the identities that objects refer to, and turns what VCD answers into outcomes.
// It also holds what reconcilers of several kinds watch and look up.
package session

import (
	"context"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/edge"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// How long to wait before looking again.
const (
	// TaskPoll is a fallback: the end of a task wakes us.
	TaskPoll = 10 * time.Second
	// BusyPoll is for entities held by the task of somebody else.
	BusyPoll = 3 * time.Second
	// UnreachablePoll is for a VCD that does not answer.
	UnreachablePoll = 30 * time.Second
	// RemedyPoll is for what a person has to mend in VCD.
	RemedyPoll = time.Minute
	// loginPoll is for refused credentials: those that never worked are tried once per version of their Secret, others
	// again after a growing while.
	loginPoll = 10 * time.Minute
)

// Placements finds what machines are placed in.
type Placements interface {
	FindVDC(ctx context.Context, nameOrURN string) (vcd.VDC, error)
	FindNetwork(ctx context.Context, vdc vcd.VDC, nameOrURN string) (vcd.Network, error)
	ForgetNetwork(vdc vcd.VDC, network vcd.Ref)
	FindTemplate(ctx context.Context, catalog, template string) (vcd.Template, error)
}

// gateways finds edge gateways.
type gateways interface {
	FindGateway(ctx context.Context, nameOrURN string) (vcd.Ref, error)
}

// policies finds what machines are subject to.
type policies interface {
	FindSizingPolicy(ctx context.Context, vdc vcd.VDC, nameOrURN string) (vcd.Policy, error)
	FindPlacementPolicy(ctx context.Context, vdc vcd.VDC, nameOrURN string) (vcd.Policy, error)
	FindDefaultSizing(ctx context.Context, vdc vcd.VDC) (vcd.Policy, error)
	FindStorageProfile(ctx context.Context, vdc vcd.VDC, nameOrURN string) (vcd.StorageProfile, error)
}

// Inventory answers for all machines at once.
type Inventory interface {
	VMs(ctx context.Context, vdc vcd.VDC, vApp string, maxAge time.Duration) ([]vcd.VMRecord, error)
	QueryVM(ctx context.Context, id string) (vcd.VMRecord, error)
	Invalidate(vdc vcd.VDC)
}

// lookups forgets what was found by name.
type lookups interface{ Refresh() }

// VApps looks after vApps.
type VApps interface {
	FindVApp(ctx context.Context, vdc vcd.VDC, name string) (vcd.VApp, error)
	ComposeVApp(ctx context.Context, vdc vcd.VDC, spec vcd.VAppSpec) (vcd.VApp, vcd.Task, error)
	AddVMs(ctx context.Context, vAppID string, vms []vcd.VMSpec) (vcd.Task, error)
	ConnectNetworks(ctx context.Context, vAppID string, networks []vcd.Ref) (vcd.Task, error)
	DeleteVApp(ctx context.Context, id string) (vcd.Task, error)
}

// VMClient looks after VMs.
type VMClient interface {
	VM(ctx context.Context, id string) (vcd.VM, error)
	ReconfigureVM(ctx context.Context, id string, change vcd.VMChange) (vcd.Task, error)
	DetachDisk(ctx context.Context, vmID, diskID string) (vcd.Task, error)
	DeleteVM(ctx context.Context, id string) (vcd.Task, error)
}

// absences gathers the evidence that VMs and vApps are gone.
type absences interface {
	FindLost(ctx context.Context, lost vcd.Lost) (vcd.VM, vcd.Absence, error)
	LostVApp(ctx context.Context, vdc vcd.VDC, ids ...string) (vcd.Absence, error)
}

// power switches VMs.
type power interface {
	PowerOn(ctx context.Context, id string) (vcd.Task, error)
	Shutdown(ctx context.Context, id string) (vcd.Task, error)
	PowerOff(ctx context.Context, id string) (vcd.Task, error)
}

// tasks remembers the tasks that we started.
type tasks interface {
	Follow(key string, t vcd.Task, wake func())
	Task(key string) (vcd.Task, bool)
	Forget(key string)
}

// history tells and ends what others do, too.
type history interface {
	History(ctx context.Context, ids ...string) ([]vcd.Task, error)
	CancelTask(ctx context.Context, id string) error
}

// A Session is what reconcilers need of a vcd.Session.
type Session struct {
	Placements
	gateways
	policies
	Inventory
	lookups
	VApps
	VMClient
	absences
	power
	tasks
	history
	leases
	namedDisks

	Balancers func() *edge.Driver // with caches of its own

	Version string // of the Secret that it was opened with
}

// Opener opens sessions, or returns those that are open.
type Opener func(context.Context, vcd.Config) (*Session, error)

// Logout ends the sessions of credentials at a site, without waiting.
type Logout func(context.Context, vcd.Config)

// Of returns the sessions of pool.
func Of(pool *vcd.Pool) Opener {
	return func(ctx context.Context, config vcd.Config) (*Session, error) {
		s, err := pool.Session(ctx, config)
		if err != nil {
			return nil, err
		}
		return &Session{
			absences: s,
			Placements: struct {
				*vcd.VDCs
				*vcd.Networks
				*vcd.Templates
			}{s.VDCs, s.Networks, s.Templates},
			gateways: s.Gateways, policies: s.VDCs, Inventory: s.Inventory, lookups: s, VApps: s.VApps, VMClient: s.VMs, power: s.VMs,
			tasks: s.Tasks, history: s.Tasks, leases: s.VApps, namedDisks: s.Disks,
			Balancers: func() *edge.Driver {
				return edge.New(func(context.Context) (*vcd.Session, error) { return s, nil }, edge.Options{})
			},
		}, nil
	}
}

// Limits of the delay after a failure. It doubles each time.
const (
	FirstRetry = 15 * time.Second
)

// Caller names the cluster of obj among those that call VCD: they take turns.
func Caller(obj client.Object) string {
	return obj.GetNamespace() + "/" + obj.GetLabels()[clusterv1.ClusterNameLabel]
}

// namedDisks looks after independent disks.
type namedDisks interface {
	NamedDisks(ctx context.Context, vdc vcd.VDC) ([]vcd.NamedDisk, error)
	DeleteNamedDisk(ctx context.Context, id string) (vcd.Task, error)
}

// leases renews the leases of vApps.
type leases interface {
	VApp(ctx context.Context, id string) (vcd.VApp, error)
	SetLease(ctx context.Context, vAppID string, runtime, storage time.Duration) (vcd.Task, error)
}
