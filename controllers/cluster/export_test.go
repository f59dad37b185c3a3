// SPDX-License-Identifier: Apache-2.0

package cluster

import "k8s.io/apimachinery/pkg/types"

// Helpers for package cluster_test. The tests are external because controllertest imports this package.

func (r *Reconciler) ForgetPurge(uid types.UID) { r.purges.Drop(uid) }
