// SPDX-License-Identifier: Apache-2.0

package verifysite

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// busyTries is how often two writes are made to see whether they exclude each other.
const busyTries = 5

// errTooQuick means that a task always ended before the answer to the second write.
var errTooQuick = errors.New("the first write always ended before the second one was answered")

// A starter makes a write and returns the id of its task.
type starter func(ctx context.Context) (string, error)

// call returns the starter of a call.
func (b *bench) call(call vcd.RawCall) starter {
	return func(ctx context.Context) (string, error) { return b.start(ctx, call) }
}

// excluded reports whether a second write is refused as busy while a first one runs. The error of the refusal comes with
// it. Both writes have ended when it returns.
func (b *bench) excluded(ctx context.Context, first, second starter) (bool, error, error) {
	for range busyTries {
		var running string
		err := b.unbusy(ctx, func() (err error) {
			running, err = first(ctx)
			return err
		})
		if err != nil {
			return false, nil, err
		}
		other, refusal := second(ctx)
		now, err := b.read(ctx, running)
		if err != nil {
			return false, nil, err
		}
		if err := b.await(ctx, running); err != nil {
			return false, nil, err
		}
		switch {
		case errors.Is(refusal, vcd.ErrBusy):
			return true, refusal, nil
		case refusal != nil:
			return false, nil, refusal
		}
		if err := b.await(ctx, other); err != nil {
			return false, nil, err
		}
		if now.running {
			return false, nil, nil
		}
	}
	return false, nil, errTooQuick
}

// exclusive makes two writes and says whether they exclude each other.
func (b *bench) exclusive(ctx context.Context, first, second starter) (seen, error) {
	busy, _, err := b.excluded(ctx, first, second)
	switch {
	case err != nil:
		return seen{}, err
	case busy:
		return isTrue(howWriteBusy), nil
	}
	return isFalse(howWriteAccepted), nil
}

func isTrue(how Text) seen { return seen{value: "true", how: how} }

func isFalse(how Text) seen { return seen{value: "false", how: how} }

// is returns a result that is true if a claim is; each way has its own sentence.
func is(claim bool, yes, no Text) seen {
	if claim {
		return isTrue(yes)
	}
	return isFalse(no)
}

func number(n int, how Text) seen { return seen{value: strconv.Itoa(n), how: how} }

func unknown(reason Text) seen { return seen{reason: reason} }

// addVM is the starter of adding a VM to the vApp.
func (b *bench) addVM(ctx context.Context) (string, error) {
	spec, err := b.newVM("spare")
	if err != nil {
		return "", err
	}
	t, err := b.session.VApps.AddVMs(ctx, b.vApp, []vcd.VMSpec{spec})
	return bare(t.ID), err
}

// writeVM is the starter of a small write to one of the two VMs.
func (b *bench) writeVM(i int) starter {
	return func(ctx context.Context) (string, error) {
		vm, err := b.session.VMs.VM(ctx, b.vms[i])
		if err != nil {
			return "", err
		}
		return b.start(ctx, b.rewrite(vm.ID, vm.Name))
	}
}

// writeVMAtOnce is [bench.writeVM] without a request before it.
func (b *bench) writeVMAtOnce(ctx context.Context, i int) (starter, error) {
	vm, err := b.session.VMs.VM(ctx, b.vms[i])
	return b.call(b.rewrite(vm.ID, vm.Name)), err
}

// vmWaitsForVApp recomposes the vApp, and writes to one of its VMs.
func vmWaitsForVApp(ctx context.Context, b *bench) (seen, error) {
	if err := b.compose(ctx); err != nil {
		return seen{}, err
	}
	write, err := b.writeVMAtOnce(ctx, 0)
	if err != nil {
		return seen{}, err
	}
	got, err := b.exclusive(ctx, b.addVM, write)
	if err != nil {
		return seen{}, err
	}
	return got, b.drop(ctx)
}

// vAppWaitsForVM writes to a VM, and recomposes its vApp.
func vAppWaitsForVM(ctx context.Context, b *bench) (seen, error) {
	if err := b.compose(ctx); err != nil {
		return seen{}, err
	}
	got, err := b.exclusive(ctx, b.writeVM(0), b.addVM)
	if err != nil {
		return seen{}, err
	}
	return got, b.drop(ctx)
}

// vmWriteLocksVApp writes to two VMs of the vApp.
func vmWriteLocksVApp(ctx context.Context, b *bench) (seen, error) {
	if err := b.compose(ctx); err != nil {
		return seen{}, err
	}
	second, err := b.writeVMAtOnce(ctx, 1)
	if err != nil {
		return seen{}, err
	}
	return b.exclusive(ctx, b.writeVM(0), second)
}

// busyTextTenant writes to a VM twice, and reads with which words the second write is refused.
func busyTextTenant(ctx context.Context, b *bench) (seen, error) {
	if err := b.compose(ctx); err != nil {
		return seen{}, err
	}
	second, err := b.writeVMAtOnce(ctx, 0)
	if err != nil {
		return seen{}, err
	}
	busy, refusal, err := b.excluded(ctx, b.writeVM(0), second)
	if err != nil {
		return seen{}, err
	}
	answer, ok := errors.AsType[*vcd.StatusError](refusal)
	switch {
	case !busy || !ok:
		return unknown(answeredUnknown), nil
	case strings.HasPrefix(answer.Message, "Unable to perform this action"):
		return isTrue(howBusyText), nil
	case strings.Contains(answer.Message, "is busy completing an operation"):
		return isFalse(howBusyText), nil
	}
	return unknown(answeredUnknown), nil
}
