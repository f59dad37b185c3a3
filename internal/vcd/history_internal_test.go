// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestTasksThatDeletedTheirOwner(t *testing.T) {
	const vApp, vm = "urn:vcloud:vapp:1", "urn:vcloud:vm:1"
	tests := []struct {
		name string
		task Task
		want bool
	}{
		{"the deletion of a vApp", Task{Operation: "vdcDeleteVapp", Owner: vApp, State: TaskSucceeded}, true},
		{"not one that failed", Task{Operation: "vdcDeleteVapp", Owner: vApp, State: TaskFailed}, false},
		{"the deletion of a VM", Task{Operation: "vappDeleteVm", Owner: vm, State: TaskSucceeded}, true},
		{"not of a vApp, if one of its VMs was", Task{Operation: "vappDeleteVm", Owner: vApp, State: TaskSucceeded}, false},
		{"not the deletion of another object", Task{Operation: "metadataDelete", Owner: vm, State: TaskSucceeded}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			NewWithT(t).Expect(tt.task.deletes()).To(Equal(tt.want))
		})
	}
}
