// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"fmt"
	"strconv"
)

// Status is the numeric state of a vApp or VM in VCD.
type Status int

// States of vApps and VMs.
const (
	StatusFailedCreation     Status = -1
	StatusUnresolved         Status = 0
	StatusResolved           Status = 1
	StatusSuspended          Status = 3
	StatusPoweredOn          Status = 4
	StatusWaitingForInput    Status = 5
	StatusUnknown            Status = 6
	StatusUnrecognized       Status = 7
	StatusPoweredOff         Status = 8
	StatusInconsistent       Status = 9
	StatusMixed              Status = 10
	StatusPartiallySuspended Status = 20
)

// statusByName maps the names of states in the query service to states.
var statusByName = map[string]Status{
	"FAILED_CREATION":     StatusFailedCreation,
	"UNRESOLVED":          StatusUnresolved,
	"RESOLVED":            StatusResolved,
	"DEPLOYED":            StatusResolved,
	"SUSPENDED":           StatusSuspended,
	"POWERED_ON":          StatusPoweredOn,
	"WAITING_FOR_INPUT":   StatusWaitingForInput,
	"UNKNOWN":             StatusUnknown,
	"UNRECOGNIZED":        StatusUnrecognized,
	"POWERED_OFF":         StatusPoweredOff,
	"INCONSISTENT_STATE":  StatusInconsistent,
	"MIXED":               StatusMixed,
	"PARTIALLY_SUSPENDED": StatusPartiallySuspended,
}

func parseStatus(name string) Status {
	if status, ok := statusByName[name]; ok {
		return status
	}
	if number, err := strconv.Atoi(name); err == nil {
		return Status(number)
	}
	return StatusUnknown
}

// String returns the name of the state in VCD.
func (s Status) String() string {
	switch s {
	case StatusResolved:
		return "RESOLVED"
	default:
		for name, status := range statusByName {
			if status == s {
				return name
			}
		}
	}
	return fmt.Sprintf("status %d", int(s))
}
