// SPDX-License-Identifier: Apache-2.0

package store

// States of vApps, VMs and templates.
const (
	FailedCreation Status = -1
	Unresolved     Status = 0
	Resolved       Status = 1
	Suspended      Status = 3
	PoweredOn      Status = 4
	PoweredOff     Status = 8
	Mixed          Status = 10
)

// A Status is VCD's number for the state of a vApp or VM.
type Status int

// Text returns the name of a status in the query service.
func (s Status) Text() string {
	switch s {
	case FailedCreation:
		return "FAILED_CREATION"
	case Resolved:
		return "RESOLVED"
	case Suspended:
		return "SUSPENDED"
	case PoweredOn:
		return "POWERED_ON"
	case PoweredOff:
		return "POWERED_OFF"
	case Mixed:
		return "MIXED"
	default:
		return "UNRESOLVED"
	}
}
