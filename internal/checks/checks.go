// SPDX-License-Identifier: Apache-2.0

// Package checks detects problems that prevent a cluster and its machines from working in a VDC. The manager reports
// the findings in conditions; vcdctl doctor reports them as preflight checks. The package only evaluates facts, which
// its callers read from VCD.
package checks

import "fmt"

// A Finding is a problem and its remedy.
type Finding struct {
	// Reason is the reason of the condition.
	Reason  string
	Message string
	Remedy  string
}

// finding returns a finding with a message formatted by [fmt.Sprintf].
func finding(reason, remedy, format string, args ...any) *Finding {
	return &Finding{
		Reason:  reason,
		Message: fmt.Sprintf(format, args...),
		Remedy:  remedy,
	}
}
