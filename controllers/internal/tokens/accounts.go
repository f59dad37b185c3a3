// SPDX-License-Identifier: Apache-2.0

package tokens

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// Accounts holds the service accounts of this process, one for each Secret. All users of a Secret share its account, so
// that there is one login at a time. The zero value is ready to use.
type Accounts struct {
	mu       sync.Mutex
	bySecret map[types.NamespacedName]*vcd.ServiceAccount
}

// Of returns the service account with its token in a Secret. It is never dropped, because two accounts for one Secret
// would lock each other out.
func (a *Accounts) Of(api API, secret types.NamespacedName) *vcd.ServiceAccount {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.bySecret == nil {
		a.bySecret = map[types.NamespacedName]*vcd.ServiceAccount{}
	}
	if a.bySecret[secret] == nil {
		a.bySecret[secret] = vcd.NewServiceAccount(&Secret{API: api, Key: secret})
	}
	return a.bySecret[secret]
}
