package machine

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// A step is something that is asked of VCD and ends with a task.
type step string

const (
	stepCompose  step = "compose"  // a vApp with its first VMs
	stepConnect  step = "connect"  // networks to a vApp
	stepAdd      step = "add"      // VMs to a vApp
	stepCleanUp  step = "clean-up" // what a failed creation left behind
	stepInject   step = "inject"   // bootstrap data and disk size
	stepPowerOn  step = "power-on"
	stepGrow     step = "grow"  // the first disk, of a VM that runs
	stepClear    step = "clear" // bootstrap data, after the guest read it
	stepShutdown step = "shutdown"
	stepPowerOff step = "power-off"
	stepDetach   step = "detach" // an independent disk
	stepDelete   step = "delete"
)

// Limits of the delay after a failure. It doubles each time.
const (
	lastRetry = 10 * time.Minute
)

// A memory is what this process knows of a machine besides its object. Losing it costs reads, nothing else.
// One reconcile at a time uses it.
type memory struct {
	// vm is the VM as it was read last, with what our own tasks changed since. It is trusted while the machine is
	// being created: nobody else has a reason to touch it.
	vm *vcd.VM
	// vmSeenBy is what vm was read with: who logs in as somebody else looks anew.
	vmSeenBy session.VMClient

	// askedDiskMiB is the size that the first disk of vm was asked to have.
	askedDiskMiB int64

	// full is the VM as it was read last, to compare it with what it was made like; nil if this process did not read it. row
	// is its row in the inventory then, and readNext when to read it again.
	full     *vcd.VM
	row      vcd.VMRecord
	readNext time.Time

	// missed is when this process first did not see the VM; zero if another did.
	missed time.Time
	// announced is when machines of other clusters of the site were made to look because the VM of this one is gone.
	announced time.Time
	// unwell is set by another machine: the inventory must be looked at afresh.
	unwell atomic.Bool
	// well says whether the last pass found nothing to do.
	well bool

	// unanswered says whether VCD gave no answer in the last pass.
	unanswered bool

	// waitsSince is when the machine first wanted its VM to be created.
	waitsSince time.Time

	// cancelled is when VCD was last asked to give up a shutdown that took too long; cancelRefused says that it would not.
	cancelled     time.Time
	cancelRefused bool

	failure failure
}

// A failure is why a step was not or will not be done, and when to try again.
type failure struct {
	step       step
	out        phases.Outcome
	count      int
	until      time.Time
	generation int64
}

// forgetVM makes the VM be read again.
func (m *memory) forgetVM() { m.vm, m.vmSeenBy, m.full = nil, nil, nil }

// failed remembers that a step failed. A change of the spec is a reason to try again at once.
func (m *memory) failed(what step, out phases.Outcome, now time.Time, generation int64) phases.Outcome {
	count := 0
	if m.failure.step == what && m.failure.generation == generation {
		count = m.failure.count
	}
	out.After = min(session.FirstRetry<<min(count, 10), lastRetry)
	m.failure = failure{step: what, out: out, count: count + 1, until: now.Add(out.After), generation: generation}
	return out
}

// failing returns the failure of a step while it is too early to try again.
func (m *memory) failing(what step, now time.Time, generation int64) phases.Outcome {
	f := m.failure
	if f.step != what || f.generation != generation || !now.Before(f.until) {
		return phases.Done
	}
	f.out.After = f.until.Sub(now)
	return f.out
}

// succeeded forgets that a step failed.
func (m *memory) succeeded(what step) {
	if m.failure.step == what {
		m.failure = failure{}
	}
}

// memories holds the memory of each machine. The zero value is usable.
type memories struct {
	mu    sync.Mutex
	byUID map[types.UID]*memory
}

func (m *memories) of(uid types.UID) *memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.byUID == nil {
		m.byUID = map[types.UID]*memory{}
	}
	if m.byUID[uid] == nil {
		m.byUID[uid] = &memory{}
	}
	return m.byUID[uid]
}

// forgetting handles events of machines: it drops what is remembered of one that is gone, also if a person removed its finalizer. It
// starts no reconcile.
func (m *memories) forgetting() handler.EventHandler {
	return handler.Funcs{DeleteFunc: func(_ context.Context, e event.DeleteEvent, _ workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.byUID, e.Object.GetUID())
	}}
}
