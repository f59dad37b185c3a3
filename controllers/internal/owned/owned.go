// SPDX-License-Identifier: Apache-2.0

// Package owned decides whether the manager created an object in the management cluster for another object. A name
// proves nothing, because a user may have created an object with that name.
package owned

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/intervals"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// By reports whether obj belongs to owner. A restore from a backup may drop the owner reference, so an object without
// any controller belongs to owner if its label has the value.
func By(owner, obj client.Object, label, value string) bool {
	if metav1.GetControllerOf(obj) != nil {
		return metav1.IsControlledBy(obj, owner)
	}
	return value != "" && obj.GetLabels()[label] == value
}

// Conflict returns the result for an object of another owner whose name the manager needs.
func Conflict(kind, name, owner, purpose string) phases.Result {
	return phases.Fail(intervals.Remedy, infrav1.NameConflictReason,
		"%s %s exists but does not belong to this %s: delete or rename it, because %s needs this name",
		kind, name, owner, cmp.Or(purpose, "the manager"))
}
