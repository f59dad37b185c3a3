// SPDX-License-Identifier: Apache-2.0

// Package owned decides whether an object in the management cluster was made by the manager for another object. A
// name proves nothing: a user may have made an object of that name.
package owned

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// By reports whether obj was made for owner. A restore from a backup may have removed the owner reference: an object
// without any controller is the owner's if a label has the value.
func By(owner, obj client.Object, label, value string) bool {
	if metav1.GetControllerOf(obj) != nil {
		return metav1.IsControlledBy(obj, owner)
	}
	return value != "" && obj.GetLabels()[label] == value
}

// Conflict is the result for an object of another owner that has a name the manager needs.
func Conflict(kind, name, owner, purpose string) phases.Result {
	return phases.Fail(session.RemedyPoll, infrav1.NameConflictReason,
		"%s %s exists but does not belong to this %s: delete or rename it, because %s needs this name",
		kind, name, owner, cmp.Or(purpose, "the manager"))
}
