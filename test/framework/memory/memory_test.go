// SPDX-License-Identifier: Apache-2.0

package memory_test

import (
	"os"
	"runtime"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/memory"
)

func TestMemoryOfThisProcess(t *testing.T) {
	g := NewWithT(t)
	before, err := memory.Of(os.Getpid())
	g.Expect(err).NotTo(HaveOccurred())

	block := make([]byte, 64<<20)
	for i := range block {
		block[i] = 1
	}
	during, err := memory.Of(os.Getpid())
	g.Expect(err).NotTo(HaveOccurred())
	runtime.KeepAlive(block)

	g.Expect(before.Binary).To(BeNumerically(">", 0))
	g.Expect(during.Private-before.Private).To(BeNumerically("~", 64, 16), "the size of the block")
	g.Expect(during.Peak).To(BeNumerically(">=", during.Private))
}

func TestAProcessThatDoesNotExist(t *testing.T) {
	g := NewWithT(t)

	_, err := memory.Of(1 << 30)

	g.Expect(err).To(MatchError(os.ErrNotExist))
}
