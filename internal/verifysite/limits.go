// SPDX-License-Identifier: Apache-2.0

package verifysite

import (
	"errors"
	"fmt"
	"strings"
)

// A kind is a kind of object that probes create.
type kind string

// Kinds of objects, in the wording of messages.
const (
	kindVApp     kind = "vApps"
	kindVM       kind = "VMs"
	kindDisk     kind = "independent disks"
	kindService  kind = "virtual services"
	kindPool     kind = "pools"
	kindNAT      kind = "NAT rules"
	kindProfile  kind = "application port profiles"
	kindGroup    kind = "IP sets"
	kindFirewall kind = "firewall rules"
	kindEntity   kind = "defined entities"
)

// limits are the maximum numbers of objects that a run creates, by kind. They include objects that it has already
// removed.
var limits = []struct {
	kind kind
	most int
}{
	{kindVApp, 2},
	{kindVM, 24},
	{kindDisk, 1},
	{kindService, 8},
	{kindPool, 16},
	{kindNAT, 4},
	{kindProfile, 40},
	{kindGroup, 2},
	{kindFirewall, 2},
	{kindEntity, 3},
}

// maxConcurrent is the number of virtual services that a probe has at the same time.
const maxConcurrent = 2

// errLimit means that a run would exceed the limits that it announced.
var errLimit = errors.New("the limit of objects of a run is reached")

// limitsText lists the limits.
func limitsText() string {
	parts := make([]string, 0, len(limits))
	for _, l := range limits {
		parts = append(parts, fmt.Sprintf("%d %s", l.most, l.kind))
	}
	return strings.Join(parts, ", ")
}

// counts are the numbers of objects that a run has requested, by kind.
type counts map[kind]int

// add counts an object before it is requested. It fails if the limit is reached.
func (c counts) add(k kind) error {
	for _, l := range limits {
		if l.kind == k && c[k] < l.most {
			c[k]++
			return nil
		}
	}
	return fmt.Errorf("%w: %s", errLimit, k)
}

// total returns the number of objects that the run has requested.
func (c counts) total() int {
	sum := 0
	for _, n := range c {
		sum += n
	}
	return sum
}
