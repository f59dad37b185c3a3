// SPDX-License-Identifier: Apache-2.0

package cluster

import "k8s.io/apimachinery/pkg/types"

// What the tests of package cluster_test need. They are outside because controllertest imports this package.

func (r *Reconciler) ForgetPurge(uid types.UID) { r.purges.Drop(uid) }
