// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// FailDocument records that the creation of a document or network failed.
func FailDocument(st *store.Store, t *store.Task) {
	if !t.Work.Creates {
		return
	}
	_, path, _ := strings.Cut(t.Work.Op, " ")
	if d := st.Documents.Find(path, t.Work.Document); d != nil {
		d.Failed = true
		return
	}
	failNetwork(st, t.Owner.ID)
}

// failNetwork records that the creation of a gateway, network or VDC group failed.
func failNetwork(st *store.Store, id string) {
	if _, _, g := st.Gateway(id); g != nil {
		g.Failed = true
	}
	if _, _, n := st.Network(id); n != nil {
		n.Failed = true
	}
	if _, g := st.Group(id); g != nil {
		g.Failed = true
	}
}
