// SPDX-License-Identifier: Apache-2.0

// Package checks decides what keeps a cluster and its machines from working in a VDC. The manager reports the findings in
// conditions, and vcdctl doctor before anything is created. The package only judges facts: its callers read them from VCD.
package checks

import "fmt"

// A Finding is what is wrong, and what helps.
type Finding struct {
	// Reason is that of a condition.
	Reason  string
	Message string
	Remedy  string
}

// finding returns a finding with a message as of [fmt.Sprintf].
func finding(reason, remedy, format string, args ...any) *Finding {
	return &Finding{
		Reason:  reason,
		Message: fmt.Sprintf(format, args...),
		Remedy:  remedy,
	}
}
