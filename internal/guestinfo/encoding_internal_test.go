// SPDX-License-Identifier: Apache-2.0

package guestinfo

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
)

// TestEqualDataIsEncodedEqually encodes data in goroutines that share writers, in different orders.
func TestEqualDataIsEncodedEqually(t *testing.T) {
	g := NewWithT(t)
	const values = 40
	data := make([][]byte, values)
	want := make([]string, values)
	for i := range data {
		data[i] = bytes.Repeat(fmt.Appendf(nil, "line %d of user data\n", i), 1+i*i)
		want[i] = encode(data[i])
		g.Expect(decode(want[i], encodingCloudInit)).To(Equal(data[i]))
	}
	var wg sync.WaitGroup
	for seed := range uint64(8) {
		wg.Go(func() {
			for _, i := range rand.New(rand.NewPCG(seed, 1)).Perm(values) {
				g.Expect(encode(data[i])).To(Equal(want[i]))
			}
		})
	}
	wg.Wait()
}

func BenchmarkEncode(b *testing.B) {
	data := bytes.Repeat([]byte("runcmd: [kubeadm, join]\n"), 400)
	b.ReportAllocs()
	for b.Loop() {
		encode(data)
	}
}
