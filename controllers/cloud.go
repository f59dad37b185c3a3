package controllers

import (
	"context"
	"errors"
	"fmt"
	"time"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/edge"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// How long to wait before looking again.
const (
	// taskPoll is a fallback: the end of a task wakes us.
	taskPoll = 10 * time.Second
	// busyPoll is for entities held by the task of somebody else.
	busyPoll = 3 * time.Second
	// unreachablePoll is for a VCD that does not answer.
	unreachablePoll = 30 * time.Second
	// remedyPoll is for what a person has to mend in VCD.
	remedyPoll = time.Minute
	// loginPoll is for refused credentials: those that never worked are tried once per version of their Secret, others
	// again after a growing while.
	loginPoll = 10 * time.Minute
)

// placements finds what machines are placed in.
type placements interface {
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

// inventory answers for all machines at once.
type inventory interface {
	VMs(ctx context.Context, vdc vcd.VDC, vApp string, maxAge time.Duration) ([]vcd.VMRecord, error)
	QueryVM(ctx context.Context, id string) (vcd.VMRecord, error)
	Invalidate(vdc vcd.VDC)
}

// lookups forgets what was found by name.
type lookups interface{ Refresh() }

// vApps looks after vApps.
type vApps interface {
	FindVApp(ctx context.Context, vdc vcd.VDC, name string) (vcd.VApp, error)
	ComposeVApp(ctx context.Context, vdc vcd.VDC, spec vcd.VAppSpec) (vcd.VApp, vcd.Task, error)
	AddVMs(ctx context.Context, vAppID string, vms []vcd.VMSpec) (vcd.Task, error)
	ConnectNetworks(ctx context.Context, vAppID string, networks []vcd.Ref) (vcd.Task, error)
	DeleteVApp(ctx context.Context, id string) (vcd.Task, error)
}

// vms looks after VMs.
type vms interface {
	VM(ctx context.Context, id string) (vcd.VM, error)
	ReconfigureVM(ctx context.Context, id string, change vcd.VMChange) (vcd.Task, error)
	DetachDisk(ctx context.Context, vmID, diskID string) (vcd.Task, error)
	DeleteVM(ctx context.Context, id string) (vcd.Task, error)
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

// A session is what reconcilers need of a vcd.Session.
type session struct {
	placements
	gateways
	policies
	inventory
	lookups
	vApps
	vms
	power
	tasks
	history
	leases
	namedDisks

	balancers func() balancers // with a memory of their own

	version string // of the Secret that it was opened with
}

// Sessions opens sessions, or returns those that are open.
type Sessions func(context.Context, vcd.Config) (*session, error)

// Logout ends the sessions of credentials at a site, without waiting.
type Logout func(context.Context, vcd.Config)

// SessionsOf returns the sessions of pool.
func SessionsOf(pool *vcd.Pool) Sessions {
	return func(ctx context.Context, config vcd.Config) (*session, error) {
		s, err := pool.Session(ctx, config)
		if err != nil {
			return nil, err
		}
		return &session{
			placements: struct {
				*vcd.VDCs
				*vcd.Networks
				*vcd.Templates
			}{s.VDCs, s.Networks, s.Templates},
			gateways: s.Gateways, policies: s.VDCs, inventory: s.Inventory, lookups: s, vApps: s.VApps, vms: s.VMs, power: s.VMs,
			tasks: s.Tasks, history: s.Tasks, leases: s.VApps, namedDisks: s.Disks,
			balancers: func() balancers {
				return edge.New(func(context.Context) (*vcd.Session, error) { return s, nil }, edge.Options{})
			},
		}, nil
	}
}

// loginProblem says why no session could be opened, and what to do about it. Errors that say nothing about the
// credentials or the site come back.
func loginProblem(err error, site, identity string) (outcome, error) {
	if problem, ok := errors.AsType[*storeError](err); ok {
		return problem.out, problem.err
	}
	switch {
	case errors.Is(err, vcd.ErrUnauthorized):
		return fail(loginPoll, infrav1.CredentialsRefusedReason,
			"%s refuses the credentials of %s (%v): correct username and password, or apiToken, in its Secret, or spec.org", site, identity, err), nil
	case errors.Is(err, vcd.ErrTLS):
		return fail(remedyPoll, infrav1.CertificateNotTrustedReason,
			"The certificate of %s is not trusted (%v): put its certificate authority in spec.tls.caBundle of %s, or in ca.crt of its Secret", site, err, identity), nil
	case errors.Is(err, vcd.ErrForbidden):
		return fail(remedyPoll, infrav1.ForbiddenReason, "%s does not let %s in (%v): check spec.org and the rights of the user", site, identity, err), nil
	case errors.Is(err, vcd.ErrInvalid), errors.Is(err, vcd.ErrNotFound):
		return fail(remedyPoll, infrav1.SiteInvalidReason, "%s cannot be used (%v): check spec.site and spec.org", site, err), nil
	}
	return askProblem(err)
}

// askProblem turns failures that say nothing about the request itself into outcomes: VCD is busy, asks for patience
// or does not answer. Other errors come back.
func askProblem(err error) (outcome, error) {
	switch {
	case errors.Is(err, vcd.ErrBusy):
		return wait(delay(err, busyPoll), infrav1.EntityBusyReason, "Waiting for another task in VCD"), nil
	case errors.Is(err, vcd.ErrThrottled):
		return unsure(delay(err, taskPoll), infrav1.ThrottledReason, "VCD asks for fewer requests"), nil
	case errors.Is(err, vcd.ErrUnavailable):
		return unsure(delay(err, unreachablePoll), infrav1.SiteUnreachableReason, "VCD cannot be reached or does not answer: check spec.site, the network and VCD itself"), nil
	case errors.Is(err, vcd.ErrTLS):
		return fail(remedyPoll, infrav1.CertificateNotTrustedReason, "The certificate of the site is not trusted: see the VCDCluster"), nil
	case errors.Is(err, vcd.ErrUnauthorized):
		return fail(loginPoll, infrav1.CredentialsRefusedReason, "VCD refuses the credentials: see the VCDCluster"), nil
	}
	return done, err
}

// refusal turns the failure of a request to do something into an outcome. VCD will most likely refuse it again,
// so the caller decides when to look again.
func refusal(err error, doing string) (outcome, error) {
	if out, err := askProblem(err); err == nil {
		return out, nil
	}
	switch {
	case errors.Is(err, vcd.ErrQuota):
		return fail(remedyPoll, infrav1.QuotaExceededReason, "%s: %v: free or add capacity in VCD", doing, err), nil
	case errors.Is(err, vcd.ErrForbidden):
		return fail(remedyPoll, infrav1.ForbiddenReason, "%s: %v: grant the right to the user of the identity", doing, err), nil
	case errors.Is(err, vcd.ErrConflict):
		return fail(firstRetry, infrav1.NameConflictReason, "%s: %v: it was made just now, or the user of the identity may not see it", doing, err), nil
	case errors.Is(err, vcd.ErrInvalid):
		return fail(remedyPoll, infrav1.RequestRefusedReason, "%s: %v", doing, err), nil
	}
	return done, fmt.Errorf("%s: %w", doing, err)
}

// taskFailure turns a failed task into an outcome.
func taskFailure(t vcd.Task, doing string) outcome {
	if errors.Is(t.Err, vcd.ErrQuota) {
		return fail(remedyPoll, infrav1.QuotaExceededReason, "%s: %v: free or add capacity in VCD", doing, t.Err)
	}
	return fail(remedyPoll, infrav1.TaskFailedReason, "%s: %v", doing, t.Err)
}

func delay(err error, least time.Duration) time.Duration {
	return max(vcd.RetryAfter(err), least)
}
