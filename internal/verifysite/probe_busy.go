// SPDX-License-Identifier: Apache-2.0

package verifysite

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// busyTries is the number of attempts to find out whether two writes exclude each other.
const busyTries = 5

// errTooQuick means that the task of the first write always finished before the response to the second write.
var errTooQuick = errors.New("the first write always finished before the response to the second one")

// A starter sends a write request and returns the ID of its task.
type starter func(ctx context.Context) (string, error)

// An exclusion is the result of two concurrent writes.
type exclusion struct {
	busy    bool
	refusal error // error of the second write, if busy
}

// excluded sends a second write while the first one is running. Both have finished when it returns.
func (b *bench) excluded(ctx context.Context, first, second starter) (exclusion, error) {
	for range busyTries {
		var running string
		err := b.calls.retryBusy(ctx, func() (err error) {
			running, err = first(ctx)
			return err
		})
		if err != nil {
			return exclusion{}, err
		}
		other, refusal := second(ctx)
		now, err := b.calls.read(ctx, running)
		if err != nil {
			return exclusion{}, err
		}
		if err := b.calls.await(ctx, running); err != nil {
			return exclusion{}, err
		}
		switch {
		case errors.Is(refusal, vcd.ErrBusy):
			return exclusion{busy: true, refusal: refusal}, nil
		case refusal != nil:
			return exclusion{}, refusal
		}
		if err := b.calls.await(ctx, other); err != nil {
			return exclusion{}, err
		}
		if now.running {
			return exclusion{}, nil
		}
	}
	return exclusion{}, errTooQuick
}

// exclusive reports, as a result, whether two writes exclude each other.
func (b *bench) exclusive(ctx context.Context, first, second starter) (outcome, error) {
	got, err := b.excluded(ctx, first, second)
	if err != nil {
		return outcome{}, err
	}
	return is(got.busy, howWriteBusy, howWriteAccepted), nil
}

func isTrue(how Text) outcome { return outcome{value: "true", how: how} }

func isFalse(how Text) outcome { return outcome{value: "false", how: how} }

// is returns the result true with the sentence yes if the claim is true, otherwise false with the sentence no.
func is(claim bool, yes, no Text) outcome {
	if claim {
		return isTrue(yes)
	}
	return isFalse(no)
}

func number(n int, how Text) outcome { return outcome{value: strconv.Itoa(n), how: how} }

func unknown(reason Text) outcome { return outcome{reason: reason} }

// addVM is a starter that adds a VM to the vApp.
func (b *bench) addVM(ctx context.Context) (string, error) {
	spec, err := b.newVM("spare")
	if err != nil {
		return "", err
	}
	t, err := b.session.VApps.AddVMs(ctx, b.vApp, []vcd.VMSpec{spec})
	return uuidOf(t.ID), err
}

// writeVM returns a starter of a small write to one of the two VMs.
func (b *bench) writeVM(ctx context.Context, i int) (starter, error) {
	if err := b.compose(ctx); err != nil {
		return nil, err
	}
	vm, err := b.session.VMs.VM(ctx, b.vms[i])
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (string, error) { return b.calls.start(ctx, b.rewrite(vm.ID, vm.Name)) }, nil
}

// vmWaitsForVApp recomposes the vApp, and writes to one of its VMs.
func vmWaitsForVApp(ctx context.Context, b *bench) (outcome, error) {
	write, err := b.writeVM(ctx, 0)
	if err != nil {
		return outcome{}, err
	}
	got, err := b.exclusive(ctx, b.addVM, write)
	if err != nil {
		return outcome{}, err
	}
	return got, b.deleteSpares(ctx)
}

// vAppWaitsForVM writes to a VM, and recomposes its vApp.
func vAppWaitsForVM(ctx context.Context, b *bench) (outcome, error) {
	write, err := b.writeVM(ctx, 0)
	if err != nil {
		return outcome{}, err
	}
	got, err := b.exclusive(ctx, write, b.addVM)
	if err != nil {
		return outcome{}, err
	}
	return got, b.deleteSpares(ctx)
}

// vmWriteLocksVApp writes to two VMs of the vApp.
func vmWriteLocksVApp(ctx context.Context, b *bench) (outcome, error) {
	first, err := b.writeVM(ctx, 0)
	if err != nil {
		return outcome{}, err
	}
	second, err := b.writeVM(ctx, 1)
	if err != nil {
		return outcome{}, err
	}
	return b.exclusive(ctx, first, second)
}

// busyTextTenant writes to a VM twice, and checks the message with which VCD rejects the second write.
func busyTextTenant(ctx context.Context, b *bench) (outcome, error) {
	write, err := b.writeVM(ctx, 0)
	if err != nil {
		return outcome{}, err
	}
	got, err := b.excluded(ctx, write, write)
	if err != nil {
		return outcome{}, err
	}
	answer, ok := errors.AsType[*vcd.StatusError](got.refusal)
	switch {
	case !got.busy || !ok:
		return unknown(answeredUnknown), nil
	case strings.HasPrefix(answer.Message, "Unable to perform this action"):
		return isTrue(howBusyText), nil
	case strings.Contains(answer.Message, "is busy completing an operation"):
		return isFalse(howBusyText), nil
	}
	return unknown(answeredUnknown), nil
}
