// SPDX-License-Identifier: Apache-2.0

package withdrawal_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/withdrawal"
)

func TestAConfirmationAnswersOneRequest(t *testing.T) {
	g := NewWithT(t)
	node := &corev1.Node{}
	g.Expect(withdrawal.IsRequested(node)).To(BeFalse())
	g.Expect(withdrawal.IsConfirmed(node)).To(BeFalse())

	withdrawal.Request(node, time.Unix(0, 0))
	g.Expect(node.Labels).To(HaveKey("node.kubernetes.io/exclude-from-external-load-balancers"))
	g.Expect(node.Annotations).To(HaveKeyWithValue(withdrawal.RequestedAnnotation, "1970-01-01T00:00:00Z"))
	g.Expect(withdrawal.IsRequested(node)).To(BeTrue())
	g.Expect(withdrawal.IsConfirmed(node)).To(BeFalse())

	withdrawal.Confirm(node)
	g.Expect(withdrawal.IsConfirmed(node)).To(BeTrue())

	withdrawal.Request(node, time.Unix(1, 0))
	g.Expect(withdrawal.IsConfirmed(node)).To(BeFalse(), "the confirmation is for the former request")
}
