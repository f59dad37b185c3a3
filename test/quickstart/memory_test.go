// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestMemoryOfVMsIsCountedSeparately(t *testing.T) {
	g := NewWithT(t)
	vms, rest := memoryOf(map[int]proc{
		1:  {name: "init", memory: 1},
		10: {name: "quickstart", parent: 1, memory: 10},
		11: {name: "etcd", parent: 10, memory: 100},
		12: {name: "systemd-nspawn", parent: 10, memory: 1000},
		13: {name: "kubelet", parent: 12, memory: 10000},
		20: {name: "another", parent: 1, memory: 100000},
	}, 10)
	g.Expect(vms).To(BeEquivalentTo(11000))
	g.Expect(rest).To(BeEquivalentTo(110))
}
