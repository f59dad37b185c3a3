// SPDX-License-Identifier: Apache-2.0

package local_test

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/local"
)

func TestStateIsDroppedWithItsObject(t *testing.T) {
	g := NewWithT(t)
	var store local.Store[int]
	*store.Of("a") = 1
	*store.Of("b") = 2

	g.Expect(*store.Of("a")).To(Equal(1))
	store.DropDeleted().Delete(t.Context(),
		event.DeleteEvent{Object: &infrav1.VCDMachine{ObjectMeta: metav1.ObjectMeta{UID: "a"}}}, nil)

	g.Expect(store.Len()).To(Equal(1))
	g.Expect(*store.Of("a")).To(BeZero())
	g.Expect(*store.Of("b")).To(Equal(2))
}
