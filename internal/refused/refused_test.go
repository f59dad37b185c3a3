// SPDX-License-Identifier: Apache-2.0

package refused

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestARejectionExpires(t *testing.T) {
	g := NewWithT(t)
	now := time.Unix(0, 0)
	s := New[string](Options{Now: func() time.Time { return now }, Age: time.Hour, Most: 2})

	s.Add("a")

	g.Expect(s.Has("a")).To(BeTrue())
	g.Expect(s.Has("b")).To(BeFalse())
	now = now.Add(time.Hour)
	g.Expect(s.Has("a")).To(BeFalse())
}

func TestTheOldestRejectionIsReplaced(t *testing.T) {
	g := NewWithT(t)
	now := time.Unix(0, 0)
	s := New[string](Options{Now: func() time.Time { return now }, Age: time.Hour, Most: 2})
	for _, value := range []string{"a", "b", "a"} {
		s.Add(value)
		now = now.Add(time.Minute)
	}
	g.Expect(s.Full()).To(BeTrue())

	s.Add("c")

	g.Expect(s.Has("b")).To(BeFalse())
	g.Expect(s.Has("a")).To(BeTrue(), "it was rejected again")
	g.Expect(s.Has("c")).To(BeTrue())
	now = now.Add(time.Hour)
	g.Expect(s.Full()).To(BeFalse())
}
