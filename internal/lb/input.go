// SPDX-License-Identifier: Apache-2.0

package lb

// An input is the immutable input of a plan.
type input struct {
	desired  Desired
	observed Observed
	can      Capabilities
	owned    inventory
}

func newInput(d Desired, o Observed, c Capabilities) input {
	return input{
		desired:  d,
		observed: o,
		can:      c,
		owned:    newInventory(d, o),
	}
}

// outcome returns an empty outcome.
func (in *input) outcome() outcome { return outcome{known: in.observed.Known} }
